import { describe, expect, it } from "vitest";
import { isThreadBusy } from "../src/errors.ts";
import { brokenConnection } from "./support/faults.ts";
import { hold, thread, threadId, waiting } from "./support/runs.ts";
import { gate, notRun, rejection, until } from "./support/waiting.ts";
import { problem, world } from "./support/world.ts";

const interrupt = { thread, onBusy: "interrupt", graceMs: 20_000 } as const;
const wait = { thread, onBusy: "wait", maxWaitMs: 20_000 } as const;

function aborted(signal: AbortSignal): Promise<void> {
  return until(() => signal.aborted);
}

describe.concurrent("a run that interrupts", () => {
  it("asks the run on its thread to stop, and starts when that one has released", async () => {
    const made = world();
    const first = await hold(made.tp, { runId: "first", leaseMs: 1_000 });
    const second = made.worker().withRun({ ...interrupt, runId: "second" }, ({ token }) => token);
    await aborted(first.run.signal);
    expect(first.run.signal.reason).toMatchObject({ code: "RUN_CANCELLED", status: 409 });
    // It is stopping, and still holds the thread: what it began may be recorded, and nobody else is let in.
    expect(await made.record(thread, "thread")).toMatchObject({
      state: "claimed",
      runId: "first",
      cancelRequested: true,
    });
    expect(await problem(made.worker().withRun({ thread }, notRun))).toMatchObject({
      code: "THREAD_BUSY",
      queueDepth: 1,
      holder: { runId: "first", state: "stopping", liveness: "live" },
    });
    first.end();
    expect(await first.over).toBe("first");
    expect(await second).toBe(2);
    // A new claim of the thread is asked nothing.
    expect(await made.record(thread, "thread")).toMatchObject({ cancelRequested: false });
    const [entry] = await made.tp.doubts.history(threadId);
    expect(entry).toMatchObject({ what: "cancel-requested", token: 1, why: expect.stringContaining("second") });
  });

  it("reaches a run of its own process at once, however long the lease", async () => {
    const { tp } = world();
    const first = tp.withRun({ thread, leaseMs: 60_000 }, async ({ signal }) => {
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      return "stopped";
    });
    const second = tp.withRun(interrupt, ({ token }) => token);
    expect(await first).toBe("stopped");
    expect(await second).toBe(2);
  });

  it("leaves its effect to be recorded, and lets it start no other", async () => {
    const made = world();
    const { opened, open } = gate();
    const first = rejection(
      made.tp.withRun({ thread }, async (run) => {
        expect(await run.once("k:1", () => opened.then(() => "recorded"))).toBe("recorded");
        return await run.once("k:2", notRun);
      }),
    );
    await until(() => made.executions() === 1);
    const second = made.tp.withRun(interrupt, () => made.record("k:1"));
    await until(async () => (await made.record(thread, "thread")).cancelRequested);
    open();
    expect(await first).toMatchObject({ code: "RUN_CANCELLED" });
    expect(await second).toMatchObject({ state: "completed" });
    expect((await made.record("k:2")).state).toBe("released");
  });

  it("is refused when that one does not stop in time, and leaves the line", async () => {
    const made = world();
    const first = await hold(made.tp, { runId: "first" });
    const error = await problem(made.tp.withRun({ ...interrupt, graceMs: 1_000 }, notRun));
    expect(error).toMatchObject({ code: "THREAD_WAIT_TIMEOUT", holder: { runId: "first", state: "stopping" } });
    expect(isThreadBusy(error)).toBe(true);
    await waiting(made, 0);
    first.end();
    expect(await first.over).toBe("first");
  });

  it("passes nobody who waits: whoever comes first gets its turn, and is asked to be brief", async () => {
    const made = world();
    const order: string[] = [];
    const first = await hold(made.tp);
    const waiter = made.tp.withRun(wait, async ({ signal }) => {
      await aborted(signal);
      order.push("waiter");
    });
    await waiting(made, 1);
    const last = made.worker().withRun(interrupt, () => order.push("interrupter"));
    await waiting(made, 2);
    first.end();
    await Promise.all([first.over, waiter, last]);
    expect(order).toEqual(["waiter", "interrupter"]);
  });

  it("asks nobody to stop when it may not even wait", async () => {
    const made = world();
    const first = await hold(made.tp);
    const waiter = made.worker().withRun(wait, () => undefined);
    await waiting(made, 1);
    expect((await problem(made.tp.withRun({ ...interrupt, maxQueue: 1 }, notRun))).code).toBe("THREAD_QUEUE_FULL");
    expect(await made.tp.doubts.history(threadId)).toEqual([]);
    expect(first.run.signal.aborted).toBe(false);
    first.end();
    await waiter;
  });

  it("18: asks again when a renewal came between, and asks nobody who came after", async () => {
    const made = world();
    const first = await hold(made.worker(), { runId: "first" });
    let asked = 0;
    made.around("resolve", async (pass) => {
      const { id, attemptId, token } = await made.record(thread, "thread");
      asked++;
      if (asked === 1) await made.tp.store.renew([{ id, attemptId, token, leaseMs: 30_000 }]);
      if (asked === 2) {
        first.end();
        await first.over;
      }
      return await pass();
    });
    const third = made.tp.withRun(interrupt, ({ signal, token }) => [signal.aborted, token]);
    expect(await third).toEqual([false, 2]);
    expect(asked).toBe(2);
    expect(await made.tp.doubts.history(threadId)).toEqual([]);
  });

  it("13: says it again when the answer was lost, and it is in the history once", async () => {
    const made = world();
    const first = await hold(made.tp);
    const undo = made.around("resolve", async (pass) => {
      await pass();
      undo();
      throw brokenConnection();
    });
    const second = made.tp.withRun(interrupt, ({ token }) => token);
    await aborted(first.run.signal);
    first.end();
    expect(await second).toBe(2);
    expect((await made.tp.doubts.history(threadId)).map(({ what }) => what)).toEqual(["cancel-requested"]);
    expect(made.events.filter(({ type }) => type === "cancel-requested")).toHaveLength(1);
  });

  it("takes a thread whose holder is dead without asking it", async () => {
    const made = world();
    await hold(made.worker(), { leaseMs: 1_000 });
    made.advance(30_001);
    expect(await made.tp.withRun(interrupt, ({ token }) => token)).toBe(2);
    expect(await made.tp.doubts.history(threadId)).toEqual([]);
  });
});
