import type { HolderFacts } from "@twiceproof/core";
import { expect } from "vitest";
import { it, leaseMs, until } from "./support/place.ts";
import type { Failure } from "./support/protocol.ts";

const thread = "t";
const wait = { thread, onBusy: "wait", maxWaitMs: 50_000, maxQueue: 100 } as const;

it("1: ten runs that wait on one thread, in two processes, take turns one after the other, in the order in which they were accepted", async ({
  here,
}) => {
  const [holder, ...workers] = await Promise.all([here.start({ stopAt: ["run"] }), here.start(), here.start()]);
  const first = holder.ask("run", { thread, runId: "first", turnTakesMs: 0 });
  await holder.at("run");
  const runs = Array.from({ length: 10 }, (_, n) =>
    (workers[n % 2] ?? holder).ask("run", { ...wait, runId: `run ${n}`, turnTakesMs: 20 }),
  );
  await until("ten in line", async () => (await here.line(thread)).length === 10);
  const accepted = ["first", ...(await here.line(thread))];
  holder.pass("run");
  expect(await first).toMatchObject({ value: { token: 1 } });
  const outcomes = await Promise.all(runs);

  const turns = accepted.flatMap((runId) => [`question of ${runId}`, `answer to ${runId}`]);
  expect(here.transcript()).toEqual(turns);
  // Each has read all that came before it.
  for (const [n, outcome] of outcomes.entries()) {
    const place = accepted.indexOf(`run ${n}`);
    expect(outcome).toMatchObject({ value: { token: place + 1, read: turns.slice(0, 2 * place) } });
  }
  expect(await here.line(thread)).toEqual([]);
});

it("1: runs of many rounds on one thread, in two processes, never mix", async ({ here }) => {
  const workers = await Promise.all([here.start(), here.start()]);
  const outcomes = await Promise.all(
    workers.map(async (worker, w) => {
      const all = [];
      for (let n = 0; n < 15; n++) all.push(await worker.ask("run", { ...wait, runId: `${w}.${n}`, turnTakesMs: 5 }));
      return all;
    }),
  );
  const tokens = outcomes.flat().map((outcome) => ("value" in outcome ? outcome.value.token : outcome.code));
  expect(tokens.sort((a, b) => Number(a) - Number(b))).toEqual(Array.from({ length: 30 }, (_, n) => n + 1));
  const transcript = here.transcript();
  for (let n = 0; n < transcript.length; n += 2)
    expect(transcript[n + 1]).toBe(transcript[n]?.replace("question of", "answer to"));
  expect(transcript).toHaveLength(60);
});

it("3: a holder that is killed frees its thread for who waits, with its lease", async ({ here }) => {
  const [victim, next] = await Promise.all([here.start({ stopAt: ["run"] }), here.start()]);
  void victim.ask("run", { thread, runId: "first", leaseMs, turnTakesMs: 0 });
  await victim.at("run");
  const second = next.ask("run", { ...wait, runId: "second", turnTakesMs: 0 });
  await here.inLine(thread, "second");
  await victim.kill();
  expect(await second).toMatchObject({ value: { token: 2, read: [] } });
  expect(here.transcript()).toEqual(["question of second", "answer to second"]);
});

it("a waiter that is killed is skipped, and keeps nobody from waiting", async ({ here }) => {
  const [holder, victim, next] = await Promise.all([here.start({ stopAt: ["run"] }), here.start(), here.start()]);
  const first = holder.ask("run", { thread, runId: "first" });
  await holder.at("run");
  void victim.ask("run", { ...wait, runId: "victim", turnTakesMs: 0 });
  await here.inLine(thread, "victim");
  const third = next.ask("run", { ...wait, runId: "third", turnTakesMs: 0 });
  await here.inLine(thread, "victim", "third");
  await victim.kill();
  holder.pass("run");
  expect(await first).toMatchObject({ value: { token: 1 } });
  expect(await third).toMatchObject({ value: { token: 2 } });
  expect(here.transcript()).toEqual(["question of third", "answer to third"]);
});

it("a client that goes away while it waits leaves the line", async ({ here }) => {
  const [holder, worker, other] = await Promise.all([here.start({ stopAt: ["run"] }), here.start(), here.start()]);
  const first = holder.ask("run", { thread, runId: "first" });
  await holder.at("run");
  const second = worker.ask("run", { ...wait, runId: "second", turnTakesMs: 0 });
  await here.inLine(thread, "second");
  const third = other.ask("run", { ...wait, runId: "third", turnTakesMs: 0 });
  await here.inLine(thread, "second", "third");
  await worker.ask("abort", "second");
  expect(await second).toMatchObject({ code: "none", message: "Error: the client is gone" });
  await here.inLine(thread, "third");
  holder.pass("run");
  await first;
  expect(await third).toMatchObject({ value: { token: 2, read: [] } });
});

it("a worker that is shut down sends away who waits, and leaves the line", async ({ here }) => {
  const [holder, worker] = await Promise.all([here.start({ stopAt: ["run"] }), here.start({ graceMs: 20_000 })]);
  const first = holder.ask("run", { thread, runId: "first" });
  await holder.at("run");
  const second = worker.ask("run", { ...wait, runId: "second", turnTakesMs: 0 });
  await here.inLine(thread, "second");
  worker.terminate();
  expect(await second).toMatchObject({ code: "CLOSED" });
  expect(await worker.ended).toBe(0);
  expect(await here.line(thread)).toEqual([]);
  holder.pass("run");
  expect(await first).toMatchObject({ value: { token: 1 } });
});

it("a busy answer tells a living holder from a dead one", async ({ here }) => {
  const [holder, other] = await Promise.all([here.start({ stopAt: ["run"] }), here.start()]);
  async function refused(runId: string): Promise<HolderFacts & { readonly retryAfterMs: number }> {
    const outcome = await other.ask("run", { thread, runId });
    expect(outcome).toMatchObject({ code: "THREAD_BUSY", queueDepth: 0, holder: { runId: "first" } });
    const { holder: facts, retryAfterMs } = outcome as Failure;
    return { ...(facts as HolderFacts), retryAfterMs: retryAfterMs as number };
  }

  void holder.ask("run", { thread, runId: "first", leaseMs: 3_000 });
  await holder.at("run");
  // Alive: its heartbeat grows young again.
  for (let beats = 0, before = 0; beats < 2; ) {
    const { heartbeatAgeMs, liveness } = await refused("of the living");
    expect(liveness).toBe("live");
    if (heartbeatAgeMs < before) beats++;
    before = heartbeatAgeMs;
  }
  // Dead: it only grows older, until the lease is over.
  await holder.kill();
  await until("an old heartbeat", async () => (await refused("of the dead")).heartbeatAgeMs > 2_000);
  const dead = await refused("of the dead");
  expect(dead.leaseExpiresInMs).toBeLessThan(1_000);
  expect(dead.retryAfterMs).toBe(1_000);
  await here.lapsed(thread);
  expect(await here.tp.threads.get(thread)).toMatchObject({ runId: "first", state: "lapsed", liveness: "expired" });
  expect(await other.ask("run", { thread, runId: "next" })).toMatchObject({ value: { token: 2 } });
});

it("a busy answer tells one that is next from one that holds the thread", async ({ here }) => {
  const [holder, waiter, other] = await Promise.all([here.start({ stopAt: ["run"] }), here.start(), here.start()]);
  const first = holder.ask("run", { thread, runId: "first" });
  await holder.at("run");
  const second = waiter.ask("run", { ...wait, runId: "second" });
  await here.inLine(thread, "second");
  waiter.freeze();
  holder.pass("run");
  await first;
  expect(await other.ask("run", { thread, runId: "third" })).toMatchObject({
    code: "THREAD_BUSY",
    queueDepth: 1,
    holder: { runId: "second", state: "queued", liveness: "queued" },
  });
  waiter.thaw();
  expect(await second).toMatchObject({ value: { token: 2 } });
});

it("a run of three leases' length is overtaken neither by who waits nor by who tries", async ({ here }) => {
  const [holder, waiter, other] = await Promise.all([here.start({ stopAt: ["run"] }), here.start(), here.start()]);
  const first = holder.ask("run", { thread, runId: "first", leaseMs, turnTakesMs: 0 });
  await holder.at("run");
  const second = waiter.ask("run", { ...wait, runId: "second", turnTakesMs: 0 });
  await here.inLine(thread, "second");
  for (let ageMs = 0, n = 0; ageMs <= 3 * leaseMs; n++) {
    const refused = await other.ask("run", { thread, runId: `try ${n}` });
    expect(refused).toMatchObject({ code: "THREAD_BUSY", queueDepth: 1, holder: { runId: "first", liveness: "live" } });
    if ("holder" in refused) ageMs = refused.holder?.ageMs ?? 0;
  }
  holder.pass("run");
  expect(await first).toMatchObject({ value: { token: 1, read: [] } });
  expect(await second).toMatchObject({ value: { token: 2 } });
  expect(here.transcript()).toHaveLength(4);
});

it("14: a handler that blocks its event loop past its lease is told that it lost, and the turn of who waited stands", async ({
  here,
}) => {
  const [blocked, waiter] = await Promise.all([here.start(), here.start()]);
  const flag = here.flag("go");
  const calls = [{ key: "order:1" }];
  const first = blocked.ask("run", { thread, runId: "first", leaseMs, blockUntil: flag.path, calls });
  await until("the first run", async () => (await here.thread(thread)) !== null);
  const second = await waiter.ask("run", { ...wait, runId: "second", turnTakesMs: 0, calls: [{ key: "order:2" }] });
  expect(second).toMatchObject({ value: { token: 2, outcomes: [{ value: { key: "order:2" } }] } });
  flag.raise();
  expect(await first).toMatchObject({ code: "RUN_LOST", returned: { outcomes: [{ code: "RUN_LOST" }] } });
  expect(here.transcript()).toEqual(["question of second", "answer to second"]);
  expect(here.allActs().map(({ key }) => key)).toEqual(["order:2"]);
});
