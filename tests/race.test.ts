import { expect } from "vitest";
import { it } from "./support/place.ts";

it("1: of six processes that race for three hundred keys, one wins each, and all get its result", async ({ here }) => {
  const keys = Array.from({ length: 300 }, (_, index) => `order:${index}`);
  const workers = await Promise.all(Array.from({ length: 6 }, () => here.start()));
  // Nobody has opened the database yet: they race for its creation too.
  const answers = await Promise.all(
    workers.map((worker) =>
      worker.ask(
        "onceAll",
        keys.map((key) => ({ key })),
      ),
    ),
  );

  const acts = here.allActs();
  expect(acts.map(({ key }) => key).sort()).toEqual([...keys].sort());
  expect(acts.every(({ token }) => token === 1)).toBe(true);
  const [first, ...others] = answers;
  const actor = new Map(acts.map(({ key, pid }) => [key, pid]));
  expect(first).toEqual({
    value: keys.map((key) => ({ value: { key, pid: actor.get(key), nonce: expect.any(String) } })),
  });
  for (const other of others) expect(other).toEqual(first);
  // Otherwise nobody raced.
  expect(new Set(actor.values()).size).toBeGreaterThan(1);
});

it("1: a result that all have seen is what a process that comes later gets", async ({ here }) => {
  const early = await here.start();
  const first = await early.ask("once", { key: "order:1" });
  await early.kill();
  const late = await here.start();
  expect(await late.ask("once", { key: "order:1" })).toEqual(first);
  expect(here.acts("order:1")).toBe(1);
});
