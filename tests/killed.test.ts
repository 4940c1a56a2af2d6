import { done, notDone } from "@twiceproof/core";
import { expect } from "vitest";
import { it, leaseMs, operator } from "./support/place.ts";

const key = "order:1";

it("17: killed before the claim, it leaves nothing, and another worker runs the effect", async ({ here }) => {
  const victim = await here.start({ stopAt: ["before claim"] });
  void victim.ask("once", { key });
  await victim.at("before claim");
  await victim.kill();

  expect(await here.effect(key)).toBeNull();
  const second = await here.start();
  expect(await second.ask("once", { key })).toMatchObject({ value: { key, pid: second.pid } });
  expect(here.acts(key)).toBe(1);
});

/** Where the holder dies, and how often the effect happened by then. */
const deaths = [
  { step: "after claim", acts: 0 },
  { step: "body", acts: 0 },
  { step: "acted", acts: 1 },
  { step: "before record", acts: 1 },
] as const;

it.for(deaths)("2: killed at '$step', it leaves a doubt that only a verdict ends", async ({ step, acts }, { here }) => {
  const victim = await here.start({ stopAt: [step] });
  void victim.ask("once", { key, leaseMs });
  await victim.at(step);
  await victim.kill();
  expect(here.acts(key)).toBe(acts);

  const second = await here.start();
  // It waits for as long as the dead one counts as alive.
  expect(await second.ask("once", { key })).toMatchObject({ code: "EFFECT_IN_DOUBT", holder: { liveness: "expired" } });
  const doubt = await here.doubt(key);
  expect(doubt.token).toBe(1);
  expect(await second.ask("once", { key })).toMatchObject({ code: "EFFECT_IN_DOUBT" });
  expect(here.acts(key)).toBe(acts);

  const found = acts === 1 ? done("found") : notDone();
  expect(await here.tp.doubts.resolve(doubt, found, operator)).toBe("applied");
  const third = await second.ask("once", { key });
  expect(third).toMatchObject({ value: acts === 1 ? "found" : { key, pid: second.pid } });
  expect(here.acts(key)).toBe(1);
  expect(await second.ask("once", { key })).toEqual(third);
});

it("2: killed in the effect under a long lease, it counts as running until the lease is over", async ({ here }) => {
  const victim = await here.start({ stopAt: ["acted"] });
  void victim.ask("once", { key, leaseMs: 60_000 });
  await victim.at("acted");
  await victim.kill();
  const second = await here.start();
  expect(await second.ask("once", { key, waitMs: 0 })).toMatchObject({
    code: "EFFECT_RUNNING",
    retryAfterMs: expect.any(Number),
    holder: { liveness: "live" },
  });
  expect(here.acts(key)).toBe(1);
});

it("7: killed after the record, it leaves the result to everybody", async ({ here }) => {
  const victim = await here.start({ stopAt: ["after record"] });
  void victim.ask("once", { key });
  await victim.at("after record");
  await victim.kill();

  expect(await here.effect(key)).toMatchObject({ state: "completed", token: 1 });
  const second = await here.start();
  expect(await second.ask("once", { key })).toMatchObject({ value: { key, pid: victim.pid } });
  expect(here.acts(key)).toBe(1);
});

it("2: killed while others wait, all of them are told of the doubt, and nobody runs the effect", async ({ here }) => {
  const victim = await here.start({ stopAt: ["acted"] });
  void victim.ask("once", { key, leaseMs });
  await victim.at("acted");
  const others = await Promise.all([here.start(), here.start()]);
  const answers = others.map((other) => other.ask("once", { key }));
  await victim.kill();
  for (const answer of await Promise.all(answers)) expect(answer).toMatchObject({ code: "EFFECT_IN_DOUBT" });
  expect(here.acts(key)).toBe(1);
});

it("2: an idempotent effect of a killed holder runs again, under the next token", async ({ here }) => {
  const victim = await here.start({ stopAt: ["acted"] });
  void victim.ask("once", { key, leaseMs, kind: "idempotent" });
  await victim.at("acted");
  await victim.kill();
  const second = await here.start();
  expect(await second.ask("once", { key, kind: "idempotent" })).toMatchObject({ value: { pid: second.pid } });
  expect(here.allActs().map(({ token }) => token)).toEqual([1, 2]);
  expect((await here.history(key)).map(({ what }) => what)).toEqual(["verdict-released"]);
});
