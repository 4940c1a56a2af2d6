import { describe, expect, it } from "vitest";
import { randomId } from "../src/id.ts";
import { brokenConnection } from "./support/faults.ts";
import { type Held, hold, thread, threadId, waiting } from "./support/runs.ts";
import { notRun, until } from "./support/waiting.ts";
import { problem, world } from "./support/world.ts";

const wait = { thread, onBusy: "wait", maxWaitMs: 20_000 } as const;
const by = { who: "ana@example.com", why: "the user pressed Stop" };

describe.concurrent("tp.threads.get", () => {
  it("tells who works on a thread, whether it lives, and how many wait", async () => {
    const made = world();
    const { threads } = made.tp;
    expect(await threads.get(thread)).toBeNull();
    const first = await hold(made.tp, { runId: "first" });
    const waiter = made.worker().withRun({ ...wait, runId: "second" }, () => undefined);
    await waiting(made, 1);
    expect(await threads.get(thread)).toMatchObject({
      id: threadId,
      runId: "first",
      token: 1,
      worker: expect.stringContaining(String(process.pid)),
      state: "claimed",
      liveness: "live",
      queueDepth: 1,
    });
    expect(await threads.cancel(thread, { ...by, runId: "first" })).toBe("requested");
    expect(await threads.get(thread)).toMatchObject({ runId: "first", state: "stopping", liveness: "live" });
    first.end();
    await waiter;
    expect(await threads.get(thread)).toBeNull();
  });

  it("tells a dead holder from a living one, and from one that is only next", async () => {
    const made = world();
    const { threads } = made.tp;
    await hold(made.worker(), { runId: "dead" });
    made.advance(30_001);
    expect(await threads.get(thread)).toMatchObject({ runId: "dead", token: 1, state: "lapsed", liveness: "expired" });
    const { store } = made.tp;
    const ticket = { id: threadId, ticketId: randomId(), runId: "next", holder: "w", leaseMs: 5_000, maxQueue: 10 };
    await store.queue(ticket);
    made.advance(1_000);
    expect(await threads.get(thread)).toMatchObject({
      runId: "next",
      token: 1,
      worker: "w",
      state: "queued",
      liveness: "queued",
      heartbeatAgeMs: expect.toSatisfy((ms: number) => ms >= 1_000 && ms < 5_000),
      queueDepth: 1,
    });
  });
});

describe.concurrent("tp.threads.cancel", () => {
  it("15: asks this run to stop, with who and why in the history", async () => {
    const made = world();
    const { threads, doubts } = made.tp;
    const first = await hold(made.tp, { runId: "first", leaseMs: 60_000 });
    const request = { ...by, runId: "first" };
    expect(await threads.cancel(thread, { ...request, evidence: "ticket 7" })).toBe("requested");
    await until(() => first.run.signal.aborted);
    expect(first.run.signal.reason).toMatchObject({ code: "RUN_CANCELLED" });
    expect(await threads.cancel(thread, request)).toBe("already");
    expect(await doubts.history(threadId)).toMatchObject([
      { what: "cancel-requested", token: 1, ...by, evidence: "ticket 7" },
    ]);
    expect(made.events.filter(({ type }) => type === "cancel-requested")).toMatchObject([
      { name: "run", id: threadId, token: 1, scope: thread, runId: "first" },
    ]);
    first.end();
    expect(await first.over).toBe("first");
  });

  it("18: late, does not touch the next run, nor a thread that nobody holds", async () => {
    const made = world();
    const { threads, doubts } = made.tp;
    const late = { ...by, runId: "first" };
    expect(await threads.cancel(thread, late)).toBe("stale");
    const first = await hold(made.tp, { runId: "first" });
    first.end();
    await first.over;
    expect(await threads.cancel(thread, late)).toBe("stale");
    const second = await hold(made.tp, { runId: "second" });
    expect(await threads.cancel(thread, late)).toBe("stale");
    expect(await doubts.history(threadId)).toEqual([]);
    expect(await made.record(thread, "thread")).toMatchObject({ runId: "second", cancelRequested: false });
    second.end();
    await second.over;
  });

  it("18: does not touch the next run either when that one comes between the look and the word", async () => {
    const made = world();
    const first = await hold(made.tp, { runId: "first" });
    const second = Promise.withResolvers<Held>();
    const undo = made.around("resolve", async (pass) => {
      undo();
      first.end();
      await first.over;
      second.resolve(await hold(made.worker(), { runId: "second" }));
      return await pass();
    });
    expect(await made.tp.threads.cancel(thread, { ...by, runId: "first" })).toBe("stale");
    expect(await made.tp.doubts.history(threadId)).toEqual([]);
    const { run, end, over } = await second.promise;
    expect(run.signal.aborted).toBe(false);
    end();
    await over;
  });

  it("13: may be said again with the same decision id", async () => {
    const made = world();
    const first = await hold(made.tp, { runId: "first" });
    made.around("resolve", async (pass) => {
      const answer = await pass();
      if (made.asked("resolve").length === 1) throw brokenConnection();
      return answer;
    });
    const request = { ...by, runId: "first", decisionId: randomId() };
    for (let n = 0; n < 2; n++) expect(await made.tp.threads.cancel(thread, request)).toBe("already");
    expect(await made.tp.doubts.history(threadId)).toHaveLength(1);
    first.end();
    await first.over;
  });
});

describe.concurrent("tp.threads.unlock", () => {
  it("3: takes the thread from a living run: it is told, starts nothing more, and the next one has a higher token", async () => {
    const made = world();
    const first = await hold(made.tp, { runId: "first", leaseMs: 60_000 });
    const request = { ...by, token: 1 };
    expect(await made.worker().threads.unlock(thread, request)).toBe("unlocked");
    expect(await problem(first.run.once("k:1", notRun))).toMatchObject({ code: "RUN_LOST" });
    expect(await made.worker().withRun({ thread }, ({ token }) => token)).toBe(3);
    first.end();
    expect(await problem(first.over)).toMatchObject({ code: "RUN_LOST", value: "first" });
    expect(made.executions()).toBe(0);
    expect(await made.tp.doubts.history(threadId)).toMatchObject([{ what: "unlocked", token: 1, ...by }]);
  });

  it("reaches a holder in its own process at once, and tells whoever listens", async () => {
    const made = world();
    const first = await hold(made.tp, { leaseMs: 60_000 });
    expect(await made.tp.threads.unlock(thread, { ...by, token: 1 })).toBe("unlocked");
    await until(() => first.run.signal.aborted);
    expect(first.run.signal.reason).toMatchObject({ code: "RUN_LOST" });
    expect(made.events).toMatchObject([{ type: "unlocked", id: threadId, token: 1 }]);
  });

  it("lets whoever waits go on", async () => {
    const made = world();
    await hold(made.tp);
    const next = made.worker().withRun(wait, ({ token }) => token);
    await waiting(made, 1);
    expect(await made.tp.threads.unlock(thread, { ...by, token: 1 })).toBe("unlocked");
    expect(await next).toBe(3);
  });

  it("5: says nothing of the run's effects: a living one is still its holder's", async () => {
    const made = world();
    const first = problem(
      made.tp.withRun({ thread }, (run) =>
        run.once("k:1", async () => {
          expect(await made.worker().threads.unlock(thread, { ...by, token: 1 })).toBe("unlocked");
          expect((await made.record("k:1")).state).toBe("claimed");
          return "recorded";
        }),
      ),
    );
    expect(await first).toMatchObject({ code: "RUN_LOST", value: "recorded" });
    expect((await made.record("k:1")).state).toBe("completed");
  });

  it("13: the same token again is `already` while nobody came after, and `stale` for any other", async () => {
    const made = world();
    const { threads } = made.tp;
    const request = { ...by, token: 1 };
    expect(await threads.unlock(thread, request)).toBe("stale");
    await hold(made.worker());
    expect(await threads.unlock(thread, { ...by, token: 2 })).toBe("stale");
    const decided = { ...request, decisionId: randomId() };
    expect(await threads.unlock(thread, decided)).toBe("unlocked");
    expect(await threads.unlock(thread, decided)).toBe("already");
    expect(await threads.unlock(thread, request)).toBe("already");
    await made.worker().withRun({ thread }, () => undefined);
    expect(await threads.unlock(thread, request)).toBe("stale");
    expect(await threads.unlock(thread, decided)).toBe("already");
    expect(await made.tp.doubts.history(threadId)).toHaveLength(1);
  });

  it("18: is said again when a renewal came between, and not when another run did", async () => {
    const made = world();
    const first = await hold(made.worker());
    const undo = made.around("resolve", async (pass) => {
      undo();
      const { id, attemptId, token } = await made.record(thread, "thread");
      await made.tp.store.renew([{ id, attemptId, token, leaseMs: 30_000 }]);
      return await pass();
    });
    expect(await made.tp.threads.unlock(thread, { ...by, token: 1 })).toBe("unlocked");
    first.end();
    await problem(first.over);
    const second = await hold(made.worker());
    made.around("resolve", async (pass) => {
      second.end();
      await second.over;
      await made.worker().withRun({ thread }, () => undefined);
      return await pass();
    });
    expect(await made.tp.threads.unlock(thread, { ...by, token: 3 })).toBe("stale");
  });
});

describe("tp.threads", () => {
  it.each([
    ["thread", ["", { ...by, runId: "r", token: 1 }]],
    ["who", [thread, { why: "w", runId: "r", token: 1 }]],
    ["why", [thread, { who: "w", why: " ", runId: "r", token: 1 }]],
    ["decisionId", [thread, { ...by, runId: "r", token: 1, decisionId: "x" }]],
    ["force", [thread, { ...by, runId: "r", token: 1, force: true }]],
  ])("refuses a wrong %s before anything is asked of the store", async (what, [of, request]) => {
    const { tp, asked } = world();
    const { runId, token, ...rest } = request as { runId: string; token: number } & typeof by;
    for (const call of [
      tp.threads.cancel(of as string, { runId, ...rest }),
      tp.threads.unlock(of as string, { token, ...rest }),
    ]) {
      const error = await problem(call);
      expect(error.code).toBe("INVALID_ARGUMENT");
      expect(error.message).toContain(`\`${what}\``);
    }
    expect(asked("get")).toHaveLength(0);
    expect(asked("resolve")).toHaveLength(0);
  });

  it("refuses a cancel without a run id, and an unlock without a token", async () => {
    const { tp } = world();
    expect((await problem(tp.threads.cancel(thread, by as never))).message).toContain("`runId`");
    expect((await problem(tp.threads.unlock(thread, by as never))).message).toContain("`token`");
  });
});
