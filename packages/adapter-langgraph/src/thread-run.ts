import { findTwiceproofError, type Run, type RunOptions, type Twiceproof, TwiceproofError } from "@twiceproof/core";
import { threadHeld } from "@twiceproof/core/adapter";
import { overtaken } from "./fence.ts";
import type { RunMark } from "./run-mark.ts";

/** How a run takes its thread: see `RunOptions` of core. */
export type LockOptions = Pick<RunOptions, "onBusy" | "maxWaitMs" | "maxQueue" | "graceMs" | "onWait" | "leaseMs">;

export const lockOptionNames: Record<keyof LockOptions, true> = {
  onBusy: true,
  maxWaitMs: true,
  maxQueue: true,
  graceMs: true,
  onWait: true,
  leaseMs: true,
};

/**
 * One pass over a thread, under its lock. What it leaves running when it ends, such as a loop that was called off in the
 * midst of a step, can neither save nor start an effect from then on; what it was saving is waited for.
 *
 * @throws TwiceproofError what `tp.withRun` throws, unless there is an `outer` run; `RUN_LOST` or `RUN_CANCELLED` in place of
 * what LangGraph makes of them
 */
export async function onThread<Result>(
  tp: Twiceproof,
  options: LockOptions & Pick<RunOptions, "thread" | "runId" | "signal">,
  body: (mark: RunMark) => Promise<Result>,
  outer?: Run,
): Promise<Result> {
  async function pass(run: Run): Promise<Result> {
    const mark: RunMark = { tp, run, lost: new AbortController(), over: false, writes: new Set() };
    try {
      return await body(mark);
    } catch (error) {
      throw findTwiceproofError(error, "RUN_LOST") ?? stopOf(mark.lost) ?? stopOf(run) ?? error;
    } finally {
      mark.over = true;
      await Promise.allSettled(mark.writes);
    }
  }
  if (outer === undefined) return await tp.withRun({ ...options, remember: false }, pass);
  const { thread, signal } = options;
  if (outer.thread !== thread || outer.fence === null)
    throw new TwiceproofError("INVALID_ARGUMENT", "`underRun` takes a run that holds the thread of the graph.");
  // Of another `tp`, it says nothing about this one's thread.
  if ((await tp.threads.get(thread))?.id !== outer.fence.id) throw overtaken();
  return await pass({
    ...outer,
    signal: signal === undefined ? outer.signal : AbortSignal.any([outer.signal, signal]),
  });
}

/** Why the run was stopped, when it was not its caller who did. */
function stopOf({ signal }: Pick<Run, "signal">): unknown {
  return signal.aborted ? findTwiceproofError(signal.reason, "RUN_LOST", "RUN_CANCELLED") : undefined;
}

/**
 * For what writes without a run of its own: a look, and no lock.
 *
 * @throws TwiceproofError `THREAD_BUSY`
 */
export async function refuseWhileHeld(tp: Twiceproof, thread: string): Promise<void> {
  const facts = await tp.threads.get(thread);
  if (facts?.liveness === "live") throw threadHeld(facts, "Nothing was saved: give the graph to guardGraph, or wait.");
}
