import { expect } from "vitest";
import { it, leaseMs } from "./support/place.ts";

it("2: an effect and a lock of the same key, in different processes, know nothing of each other", async ({ here }) => {
  const [locker, actor] = await Promise.all([here.start({ stopAt: ["lock"] }), here.start({ stopAt: ["acted"] })]);
  const lock = locker.ask("exclusive", { key: "same" });
  await locker.at("lock");
  const call = actor.ask("once", { key: "same", waitMs: 0 });
  await actor.at("acted");
  const third = await here.start();
  expect(await third.ask("exclusive", { key: "same" })).toMatchObject({ code: "LOCK_BUSY" });
  expect(await third.ask("once", { key: "same", waitMs: 0 })).toMatchObject({ code: "EFFECT_RUNNING" });
  locker.pass("lock");
  actor.pass("acted");
  expect(await lock).toEqual({ value: { token: 1 } });
  expect(await call).toMatchObject({ value: { key: "same" } });
  expect(await third.ask("exclusive", { key: "same" })).toEqual({ value: { token: 2 } });
  expect(here.acts("same")).toBe(1);
});

it("2: when the holders of both were killed, the lock is taken over and the effect is not", async ({ here }) => {
  const [locker, runner, actor, heir] = await Promise.all([
    here.start({ stopAt: ["lock"] }),
    here.start({ stopAt: ["run"] }),
    here.start({ stopAt: ["acted"] }),
    here.start(),
  ]);
  void locker.ask("exclusive", { key: "same", leaseMs });
  void runner.ask("run", { thread: "same", runId: "first", leaseMs });
  await Promise.all([locker.at("lock"), runner.at("run")]);
  void actor.ask("once", { key: "same", leaseMs });
  await actor.at("acted");
  await Promise.all([locker.kill(), runner.kill(), actor.kill()]);

  await here.doubt("same");
  for (const space of ["thread", "lock"] as const) await here.lapsed("same", space);
  expect(await heir.ask("exclusive", { key: "same" })).toEqual({ value: { token: 2 } });
  expect(await heir.ask("run", { thread: "same", runId: "second" })).toMatchObject({ value: { token: 2 } });
  expect(await heir.ask("once", { key: "same" })).toMatchObject({ code: "EFFECT_IN_DOUBT" });
  expect(await here.effect("same")).toMatchObject({ state: "in-doubt", token: 1 });
  expect(here.acts("same")).toBe(1);
});
