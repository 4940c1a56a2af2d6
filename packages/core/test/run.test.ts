import { describe, expect, it } from "vitest";
import { defineEffect } from "../src/effect.ts";
import { isLost, isThreadBusy } from "../src/errors.ts";
import { lockFingerprint } from "../src/fingerprint.ts";
import type { Run } from "../src/run.ts";
import { brokenConnection } from "./support/faults.ts";
import { gate, notRun, rejection, until } from "./support/waiting.ts";
import { problem, type World, world } from "./support/world.ts";

const charge = defineEffect({ name: "charge", run: async (input: { cents: number }) => ({ charged: input.cents }) });

/** Another worker's run takes the thread, whose lease is over. */
async function takeOver({ worker, elsewhere, advance }: World, thread = "t"): Promise<void> {
  advance(30_001);
  await elsewhere(() => worker().withRun({ thread }, () => undefined));
}

describe("a run", () => {
  it("1: is the only one on its thread, and tells the others who is busy", async () => {
    const { tp, worker, record } = world();
    const { opened, open } = gate();
    const first = tp.withRun({ thread: "secret-thread", runId: "r1" }, () => opened);
    await until(async () => (await record("secret-thread", "thread").catch(() => null)) !== null);
    const other = await problem(worker().withRun({ thread: "secret-thread", runId: "r2" }, notRun));
    expect(other).toMatchObject({ code: "THREAD_BUSY", status: 409, holder: { runId: "r1", liveness: "live" } });
    expect(other.retryAfterMs).toBeGreaterThanOrEqual(1_000);
    const same = await problem(worker().withRun({ thread: "secret-thread", runId: "r1" }, notRun));
    expect(same.code).toBe("RUN_IN_PROGRESS");
    for (const error of [other, same]) {
      expect(isThreadBusy(error)).toBe(true);
      expect(error.message).not.toContain("secret");
    }
    open();
    await first;
    expect(await worker().withRun({ thread: "secret-thread" }, ({ token }) => token)).toBe(2);
  });

  it("carries its thread, its turn and its id to the record of each effect", async () => {
    const { tp, events } = world();
    await tp.withRun({ thread: "t", runId: "r1", turn: "m1" }, async (run) => {
      expect(run).toMatchObject({ thread: "t", runId: "r1", turn: "m1", token: 1 });
      await run.once("k:1", () => 1);
    });
    expect(events.map(({ scope, turn, runId }) => ({ scope, turn, runId }))).toEqual(
      events.map(() => ({ scope: "t", turn: "m1", runId: "r1" })),
    );
    expect(events.length).toBeGreaterThan(0);
  });

  it("makes two equal calls of one turn the same call, and of another turn another", async () => {
    const { tp, executions } = world();
    const pass = (turn: string, runId: string) => (run: Run) =>
      Promise.all([run.once(charge, { cents: 1 }), run.once(charge, { cents: 1 })]).then((results) => ({
        turn,
        runId,
        results,
      }));
    await tp.withRun({ thread: "t", turn: "m1" }, pass("m1", "a"));
    await tp.withRun({ thread: "t", turn: "m1" }, pass("m1", "b"));
    expect(executions()).toBe(1);
    await tp.withRun({ thread: "t", turn: "m2" }, pass("m2", "c"));
    await tp.withRun({ thread: "u", turn: "m1" }, pass("m1", "d"));
    expect(executions()).toBe(3);
  });

  it("frees its thread when its body throws, and passes the error on", async () => {
    const { tp, record } = world();
    const thrown = new RangeError("mine");
    expect(await rejection(tp.withRun({ thread: "t" }, () => Promise.reject(thrown)))).toBe(thrown);
    expect(
      await rejection(
        tp.withRun({ thread: "t" }, () => {
          throw thrown;
        }),
      ),
    ).toBe(thrown);
    expect((await record("t", "thread")).state).toBe("released");
  });

  it("without a lock is a scope and a turn only", async () => {
    const { tp, asked } = world();
    const { opened, open } = gate();
    const first = tp.withRun({ thread: "t", lock: false }, () => opened);
    const result = await tp.withRun({ thread: "t", lock: false }, async (run) => {
      expect(run.token).toBeNull();
      return await run.once(charge, { cents: 1 });
    });
    expect(result).toEqual({ charged: 1 });
    expect(
      asked("claim")
        .flat()
        .flat()
        .map(({ kind, fence }) => [kind, fence]),
    ).toEqual([["effect", null]]);
    open();
    await first;
  });

  it.each([
    ["thread", { thread: "" }],
    ["thread", {}],
    ["runId", { thread: "t", runId: "a\0b" }],
    ["turn", { thread: "t", turn: "\ud800" }],
    ["leaseMs", { thread: "t", leaseMs: 0 }],
    ["onBusy", { thread: "t", onBusy: "rollback" }],
    ["maxWaitMs", { thread: "t", onBusy: "wait", maxWaitMs: -1 }],
    ["maxQueue", { thread: "t", onBusy: "wait", maxQueue: 0 }],
    ["graceMs", { thread: "t", onBusy: "interrupt", graceMs: 1.5 }],
    ["onWait", { thread: "t", onBusy: "wait", onWait: true }],
    ["maxWait", { thread: "t", maxWait: 10 }],
  ])("refuses a wrong %s before anything is claimed", async (what, options) => {
    const { tp, asked } = world();
    const error = await problem(tp.withRun(options as never, notRun));
    expect(error.code).toBe("INVALID_ARGUMENT");
    expect(error.message).toContain(`\`${what}\``);
    expect(asked("claim")).toHaveLength(0);
  });
});

describe.concurrent("14: a run that lost its thread", () => {
  it("14: starts nothing more, and what it returned does not count", async () => {
    const made = world();
    const error = await problem(
      made.tp.withRun({ thread: "t" }, async (run) => {
        await takeOver(made);
        expect(await problem(run.once("k:1", notRun))).toMatchObject({ code: "RUN_LOST" });
        return "canary";
      }),
    );
    expect(error).toMatchObject({ code: "RUN_LOST", value: "canary" });
    expect(isLost(error)).toBe(true);
    await expect(made.record("k:1")).rejects.toThrow();
    expect(made.executions()).toBe(0);
  });

  it("14: is refused also when another run took the thread and gave it back, and by a claim that comes late", async () => {
    const made = world();
    await rejection(
      made.tp.withRun({ thread: "t" }, async (run) => {
        const undo = made.around("claim", async (pass) => {
          undo();
          await takeOver(made);
          return await pass();
        });
        expect(await problem(run.once("k:1", notRun))).toMatchObject({ code: "RUN_LOST" });
      }),
    );
  });

  it("14: still serves what is on the record", async () => {
    const made = world();
    await made.tp.once("k:1", () => "recorded");
    const error = await problem(
      made.tp.withRun({ thread: "t" }, async (run) => {
        await takeOver(made);
        return await run.once("k:1", notRun);
      }),
    );
    expect(error).toMatchObject({ code: "RUN_LOST", value: "recorded" });
  });

  it("14: keeps its thread through a lapsed lease that nobody used", async () => {
    const { tp, advance } = world();
    const value = await tp.withRun({ thread: "t" }, (run) => {
      advance(30_001);
      return run.once("k:1", () => "value");
    });
    expect(value).toBe("value");
  });

  it("14: an effect that runs when the thread is lost is told, and recorded all the same", async () => {
    const made = world();
    const error = await problem(
      made.tp.withRun({ thread: "t", leaseMs: 1_000 }, (run) =>
        run.once("k:1", async ({ signal }) => {
          await takeOver(made);
          await new Promise((resolve) => signal.addEventListener("abort", resolve));
          return isLost(signal.reason);
        }),
      ),
    );
    expect(error).toMatchObject({ code: "RUN_LOST", value: true });
    expect((await made.record("k:1")).state).toBe("completed");
  });

  it("14: a fenced claim in a batch with others is refused alone", async () => {
    const made = world();
    let outcomes: readonly PromiseSettledResult<unknown>[] = [];
    await rejection(
      made.tp.withRun({ thread: "lost" }, (lost) =>
        made.tp.withRun({ thread: "held" }, async (held) => {
          await takeOver(made, "lost");
          const before = made.asked("claim").length;
          outcomes = await Promise.allSettled([
            lost.once("k:1", notRun),
            held.once("k:2", () => 2),
            made.tp.once("k:3", () => 3),
          ]);
          expect(made.asked("claim")[before]?.[0]).toHaveLength(3);
        }),
      ),
    );
    expect(outcomes.map(({ status }) => status)).toEqual(["rejected", "fulfilled", "fulfilled"]);
  });
});

describe("14: a run that is over", () => {
  it("14: starts nothing more", async () => {
    const { tp, asked } = world();
    const run = await tp.withRun({ thread: "t" }, (each) => each);
    const before = asked("claim").length;
    expect(await problem(run.once("k:1", notRun))).toMatchObject({ code: "RUN_LOST" });
    expect(asked("claim")).toHaveLength(before);
  });

  it("14: is refused by the store too, for a claim that was under way", async () => {
    const { tp, around } = world();
    const { opened, open } = gate();
    let pending: Promise<unknown> = Promise.resolve();
    await tp.withRun({ thread: "t" }, (run) => {
      around("claim", async (pass, requests) => {
        if (requests.some(({ fingerprint }) => fingerprint !== lockFingerprint)) await opened;
        return await pass();
      });
      pending = problem(run.once("k:1", notRun));
    });
    open();
    expect(await pending).toMatchObject({ code: "RUN_LOST" });
  });
});

describe.concurrent("the end of a run", () => {
  it("does not count when the store never heard of it and the lease is over", async () => {
    const { tp, around } = world({ storeTimeoutMs: 400 });
    const error = await problem(
      tp.withRun({ thread: "t", leaseMs: 1_000 }, () => {
        around("renew", () => Promise.reject(brokenConnection()));
        around("settle", () => Promise.reject(brokenConnection()));
        return "canary";
      }),
    );
    expect(error).toMatchObject({ code: "RUN_LOST", value: "canary", cause: { code: "STORE_UNAVAILABLE" } });
  });

  it("counts while the lease lasts: the thread frees itself", async () => {
    const { tp, around } = world({ storeTimeoutMs: 100 });
    const value = await tp.withRun({ thread: "t" }, () => {
      around("settle", () => Promise.reject(brokenConnection()));
      return "value";
    });
    expect(value).toBe("value");
  });

  it.each([true, false])("whose body is through tells what it left running to stop, with lock: %s", async (lock) => {
    const { tp } = world();
    const left = await tp.withRun({ thread: "t", lock }, (run) => {
      expect(run.signal.aborted).toBe(false);
      return run.signal;
    });
    expect(left.aborted).toBe(true);
    expect(left.reason).toMatchObject({ code: "RUN_LOST" });
  });

  it.each([true, false])("that is over was not stopped by what came later, with lock: %s", async (lock) => {
    const { tp } = world();
    for (const [when, reason] of [
      ["within", { message: "called off" }],
      ["after", { code: "RUN_LOST" }],
    ] as const) {
      const outer = new AbortController();
      const callOff = () => outer.abort(new Error("called off"));
      const over = await tp.withRun({ thread: "t", lock, signal: outer.signal }, (run) => {
        if (when === "within") callOff();
        return run;
      });
      callOff();
      expect(over.signal.reason).toMatchObject(reason);
    }
  });
});
