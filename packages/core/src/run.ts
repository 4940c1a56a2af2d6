import { abandon } from "./claim.ts";
import { finishedRun } from "./finished.ts";
import { randomId } from "./id.ts";
import { type Kernel, refuseWhenClosing, underWay } from "./kernel.ts";
import type { WaitRules } from "./line.ts";
import { type Locked, lockWanted, underLock } from "./lock.ts";
import { createOnce, type Once } from "./once.ts";
import type { RunPlace } from "./prepare.ts";
import { askedToStop } from "./problems.ts";
import { runLost, runOvertaken, threadBusy } from "./problems-lock.ts";
import { createRecorded, type RecordedOf } from "./recorded.ts";
import { type RunOptions, type RunRules, runRules } from "./run-options.ts";
import { stage } from "./signals.ts";
import type { ClaimRef } from "./store.ts";
import { requestCancel } from "./threads.ts";
import { checkBody } from "./validate.ts";

/** One pass over a thread. It is passed on by hand, to whatever must be fenced by it. */
export interface Run {
  readonly thread: string;
  readonly runId: string;
  readonly turn: string;
  /** Aborts when the run is asked to stop, when the lock is lost, when the caller's signal does, and when `close` runs out of patience. */
  readonly signal: AbortSignal;
  /** Of the thread's lock: grows with each run. Null without a lock. */
  readonly token: number | null;
  /** The lock's claim, for what checks it in its own transaction. Null without a lock. */
  readonly fence: ClaimRef | null;
  /**
   * Like `tp.once`, and refused in the store once the run has lost its thread (promise 14). Its thread and turn make the
   * identity of effects without a key; a key is global, in a run too.
   */
  readonly once: Once;
  readonly recorded: RecordedOf;
}

/** How soon a run hears that it is to stop: a heartbeat of a third of the lease would let an interrupter wait for 10 s. */
const everyMs = 2_000;

export async function withRun<Result>(
  kernel: Kernel,
  options: RunOptions,
  body: (run: Run) => Result | Promise<Result>,
): Promise<Result> {
  const rules = runRules(options);
  checkBody("withRun(options, body)", body);
  refuseWhenClosing(kernel);
  if (!rules.lock) return await underWay(kernel, () => pass(kernel, rules, undefined, body));
  const { thread, turn, runId, leaseMs, signal } = rules;
  const finished = rules.remember ? finishedRun(kernel, rules) : undefined;
  const before = await finished?.recall();
  if (before !== undefined) return before.value as Result;
  const wanted = lockWanted(kernel, "thread", { key: thread, name: "run", scope: thread, turn, runId, leaseMs });
  return await underLock(
    kernel,
    {
      wanted,
      what: "A run on this thread",
      everyMs,
      wait: waitRules(kernel, rules),
      signal,
      busy: (met) => threadBusy(met, runId),
      lost: (details) => runOvertaken(runId, details),
      asked: () => askedToStop("RUN_CANCELLED", wanted.id),
      // A run is fenced: what it still does is refused, so its thread is freed at once.
      giveUp: (ref) => abandon(kernel, ref, "shutdown"),
    },
    async (locked) => {
      // It may have finished elsewhere before we had the lock; now it cannot.
      const meanwhile = await finished?.recall();
      if (meanwhile !== undefined) return meanwhile.value as Result;
      const value = await pass(kernel, rules, locked, body);
      return finished === undefined ? value : ((await finished.keep(locked.ref, value)) as Result);
    },
  );
}

async function pass<Result>(
  kernel: Kernel,
  { thread, turn, runId, signal }: RunRules,
  locked: Locked | undefined,
  body: (run: Run) => Result | Promise<Result>,
): Promise<Result> {
  const stopped = locked?.signal ?? signal;
  const { isOver, signal: ofRun, end } = stage(stopped, () => runLost(runId));
  const fence = locked?.ref ?? null;
  const place: RunPlace = { scope: thread, turn, runId, fence, signal: stopped, isOver };
  const run: Run = {
    thread,
    runId,
    turn,
    get signal() {
      return ofRun();
    },
    token: fence?.token ?? null,
    fence,
    once: createOnce(kernel, place),
    recorded: createRecorded(kernel, place),
  };
  try {
    return await body(run);
  } finally {
    end();
  }
}

function waitRules(kernel: Kernel, rules: RunRules): WaitRules | undefined {
  const { onBusy, maxWaitMs, graceMs, maxQueue, runId, onWait } = rules;
  const onPlace = onWait && told(onWait);
  switch (onBusy) {
    case "reject":
      return undefined;
    case "wait":
      return { maxMs: maxWaitMs, maxQueue, onPlace };
    case "interrupt": {
      const by = { who: `interrupt@${kernel.holder}`, why: `run ${runId} is to work on this thread`, evidence: null };
      return {
        maxMs: graceMs,
        maxQueue,
        onPlace,
        // Each holder that comes before it: who waited longer is not passed, and is asked to be brief.
        onHeld: (holder) => requestCancel(kernel, holder, { ...by, decisionId: randomId() }),
      };
    }
  }
}

/** A broken observer must not change what happens to a run. */
function told(onWait: NonNullable<RunOptions["onWait"]>): WaitRules["onPlace"] {
  return (place) => {
    (async () => onWait(place))().catch(() => undefined);
  };
}
