import { expect } from "vitest";
import { it, leaseMs } from "./support/place.ts";

/** A process whose event loop stands still renews nothing, and does not know it. */
const key = "order:1";

it("9: an effect that blocks the event loop for longer than its lease completes and is recorded", async ({ here }) => {
  const [worker, other] = await Promise.all([here.start(), here.start()]);
  const flag = here.flag("go");
  const call = worker.ask("once", { key, leaseMs, blockUntil: flag.path });
  await here.doubt(key);
  expect(await other.ask("once", { key })).toMatchObject({ code: "EFFECT_IN_DOUBT" });
  flag.raise();
  const result = await call;
  expect(result).toMatchObject({ value: { key, pid: worker.pid } });
  expect(await other.ask("once", { key })).toEqual(result);
  expect(await here.effect(key)).toMatchObject({ state: "completed", token: 1 });
  expect(here.acts(key)).toBe(1);
});

it("9: a run that blocks the event loop for longer than its lease goes on, when nobody took its thread", async ({
  here,
}) => {
  const worker = await here.start();
  const flag = here.flag("go");
  const run = worker.ask("run", { thread: "t", runId: "first", leaseMs, blockUntil: flag.path, calls: [{ key }] });
  await here.lapsed("t");
  flag.raise();
  expect(await run).toMatchObject({ value: { token: 1, outcomes: [{ value: { key } }] } });
  expect(here.acts(key)).toBe(1);
});

it("14: a run that blocks the event loop for longer than its lease is lost, when somebody took its thread", async ({
  here,
}) => {
  const [worker, other] = await Promise.all([here.start(), here.start()]);
  const flag = here.flag("go");
  const run = worker.ask("run", { thread: "t", runId: "first", leaseMs, blockUntil: flag.path, calls: [{ key }] });
  await here.lapsed("t");
  expect(await other.ask("run", { thread: "t", runId: "second" })).toEqual({ value: { token: 2, outcomes: [] } });
  flag.raise();
  expect(await run).toMatchObject({ code: "RUN_LOST", returned: { outcomes: [{ code: "RUN_LOST" }] } });
  expect(here.acts(key)).toBe(0);
});
