import { expect } from "vitest";
import { it, leaseMs } from "./support/place.ts";
import type { Worker } from "./support/spawn.ts";

const thread = "t";

it("1: of two processes that start a run on one thread at once, one runs and the other is told by whom, each time", async ({
  here,
}) => {
  const workers = await Promise.all([here.start({ stopAt: ["run"] }), here.start({ stopAt: ["run"] })]);
  for (let round = 1; round <= 40; round++) {
    function begin(worker: Worker) {
      const runId = `run ${round} of ${worker.pid}`;
      const key = `order:${round}:${worker.pid}`;
      const run = { worker, runId, key, outcome: worker.ask("run", { thread, runId, calls: [{ key }] }) };
      return { ...run, answered: run.outcome.then(() => run) };
    }
    const [first, second] = workers;
    const one = begin(round % 2 === 0 ? first : second);
    const two = begin(round % 2 === 0 ? second : first);
    // The winner stays in its run until the other has its answer.
    const loser = await Promise.race([one.answered, two.answered]);
    const winner = loser.worker === one.worker ? two : one;
    expect(await loser.outcome).toMatchObject({
      code: "THREAD_BUSY",
      holder: { runId: winner.runId, liveness: "live" },
      retryAfterMs: expect.any(Number),
    });
    await winner.worker.at("run");
    winner.worker.pass("run");
    expect(await winner.outcome).toMatchObject({ value: { token: round, outcomes: [{ value: { key: winner.key } }] } });
    expect([here.acts(winner.key), here.acts(loser.key)]).toEqual([1, 0]);
  }
});

it("3: a run that was killed frees its thread with its lease, and the next one has a higher token", async ({
  here,
}) => {
  const [victim, next] = await Promise.all([here.start({ stopAt: ["run"] }), here.start()]);
  void victim.ask("run", { thread, runId: "first", leaseMs });
  await victim.at("run");
  expect(await next.ask("run", { thread, runId: "too early" })).toMatchObject({ code: "THREAD_BUSY" });
  await victim.kill();
  await here.lapsed("t");
  expect(await next.ask("run", { thread, runId: "second" })).toEqual({ value: { token: 2, outcomes: [] } });
});

it.for(["while it stands still", "once it was told"])(
  "14: a run that was paused past its lease and replaced starts nothing more, asked %s",
  async (when, { here }) => {
    const [old, next] = await Promise.all([here.start({ stopAt: ["run"] }), here.start({ stopAt: ["run"] })]);
    const first = old.ask("run", { thread, runId: "first", leaseMs, calls: [{ key: "order:1" }] });
    await old.at("run");
    old.freeze();
    await here.lapsed("t");
    const second = next.ask("run", { thread, runId: "second", calls: [{ key: "order:2" }] });
    await next.at("run");
    if (when === "while it stands still") old.pass("run");
    old.thaw();
    await old.at("run aborted");
    old.pass("run");

    expect(await first).toMatchObject({ code: "RUN_LOST", returned: { outcomes: [{ code: "RUN_LOST" }] } });
    next.pass("run");
    expect(await second).toMatchObject({ value: { token: 2, outcomes: [{ value: { key: "order:2" } }] } });
    expect(here.allActs().map(({ key }) => key)).toEqual(["order:2"]);
    expect(await here.effect("order:1")).toBeNull();
  },
);

it("14: a run that is replaced in the middle of an effect may record it, and starts no other", async ({ here }) => {
  const [old, next] = await Promise.all([here.start({ stopAt: ["acted"] }), here.start()]);
  const calls = [{ key: "order:1", leaseMs: 60_000 }, { key: "order:2" }];
  const first = old.ask("run", { thread, runId: "first", leaseMs, calls });
  await old.at("acted");
  old.freeze();
  await here.lapsed("t");
  // Its living effect is nobody else's (promise 5): the next run waits for it, and may not run it.
  const second = await next.ask("run", { thread, runId: "second", calls: [{ key: "order:1", waitMs: 0 }] });
  expect(second).toMatchObject({ value: { token: 2, outcomes: [{ code: "EFFECT_RUNNING" }] } });
  old.pass("acted");
  old.thaw();
  expect(await first).toMatchObject({
    code: "RUN_LOST",
    returned: { outcomes: [{ value: { key: "order:1", pid: old.pid } }, { code: "RUN_LOST" }] },
  });
  expect(await here.effect("order:1")).toMatchObject({ state: "completed", token: 1 });
  expect(here.allActs().map(({ key }) => key)).toEqual(["order:1"]);
});

it("9: a run that was paused past its lease goes on, when nobody took its thread", async ({ here }) => {
  const worker = await here.start({ stopAt: ["run"] });
  const run = worker.ask("run", { thread, runId: "first", leaseMs, calls: [{ key: "order:1" }] });
  await worker.at("run");
  worker.freeze();
  await here.lapsed("t");
  worker.pass("run");
  worker.thaw();
  expect(await run).toMatchObject({ value: { token: 1, outcomes: [{ value: { key: "order:1" } }] } });
  expect(here.acts("order:1")).toBe(1);
});

it("3: a lock whose holder was paused past its lease and replaced is lost, whatever its body returned", async ({
  here,
}) => {
  const [old, next] = await Promise.all([here.start({ stopAt: ["lock"] }), here.start()]);
  const first = old.ask("exclusive", { key: "import", leaseMs });
  await old.at("lock");
  old.freeze();
  await here.lapsed("import", "lock");
  expect(await next.ask("exclusive", { key: "import" })).toEqual({ value: { token: 2 } });
  old.pass("lock");
  old.thaw();
  expect(await first).toMatchObject({ code: "LOCK_LOST", returned: { token: 1 } });
  expect(await here.lock("import")).toMatchObject({ state: "released", token: 2 });
});

it("14: an effect that its run started and did not wait for is refused, also when its claim was under way", async ({
  here,
}) => {
  const [worker, next] = await Promise.all([here.start({ stopAt: ["before claim"] }), here.start()]);
  const leaves = { key: "order:1" };
  const run = worker.ask("run", { thread, runId: "first", leaves });
  await worker.at("before claim");
  expect(await run).toMatchObject({ value: { token: 1 } });
  expect(await next.ask("run", { thread, runId: "second" })).toMatchObject({ value: { token: 2 } });
  worker.pass("before claim", "for good");
  expect(await worker.ask("left", "first")).toMatchObject({ code: "RUN_LOST" });
  expect(await worker.ask("late", "first", { key: "order:2" })).toMatchObject({ code: "RUN_LOST" });
  expect(here.allActs()).toEqual([]);
});

it("the same run asked for again in another process is told that it is in progress, and afterwards what it returned", async ({
  here,
}) => {
  const [one, two] = await Promise.all([here.start({ stopAt: ["run"] }), here.start()]);
  const calls = [{ key: "order:1" }];
  const run = one.ask("run", { thread, runId: "first", turnTakesMs: 0, calls });
  await one.at("run");
  for (const onBusy of ["reject", "wait", "interrupt"] as const)
    expect(await two.ask("run", { thread, runId: "first", onBusy })).toMatchObject({ code: "RUN_IN_PROGRESS" });
  one.pass("run");
  const outcome = await run;
  expect(outcome).toMatchObject({ value: { token: 1, outcomes: [{ value: { pid: one.pid } }] } });
  expect(await two.ask("run", { thread, runId: "first", turnTakesMs: 0, calls })).toEqual(outcome);
  expect(await here.thread(thread)).toMatchObject({ token: 1, state: "released" });
  expect(here.transcript()).toHaveLength(2);
  expect(here.acts("order:1")).toBe(1);
});

it("a run that was killed is no finished one: the same id runs again, and its effects do not", async ({ here }) => {
  const [victim, next] = await Promise.all([here.start({ stopAt: ["after record"] }), here.start()]);
  const call = { thread, runId: "first", leaseMs, calls: [{ key: "order:1" }, { key: "order:2" }] };
  void victim.ask("run", call);
  await victim.at("after record");
  await victim.kill();
  await here.lapsed(thread);
  const outcome = await next.ask("run", call);
  expect(outcome).toMatchObject({
    value: { token: 2, outcomes: [{ value: { pid: victim.pid } }, { value: { pid: next.pid } }] },
  });
  expect(here.allActs().map(({ key }) => key)).toEqual(["order:1", "order:2"]);
});
