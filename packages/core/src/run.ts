import { abandon } from "./claim.ts";
import { TwiceproofError } from "./errors.ts";
import { randomId } from "./id.ts";
import { type Kernel, refuseWhenClosing, underWay } from "./kernel.ts";
import { type Locked, lockWanted, underLock } from "./lock.ts";
import { createOnce, type Once } from "./once.ts";
import type { RunPlace } from "./prepare.ts";
import { askedToStop, runOvertaken, threadBusy } from "./problems.ts";
import { createRecorded, type RecordedOf } from "./recorded.ts";
import type { ClaimRef } from "./store.ts";
import { checkBody, checkLeaseMs, checkOptions, checkScope } from "./validate.ts";

export interface RunOptions {
  /** What the run works on. One run per thread at a time, in this namespace, on any number of machines. */
  readonly thread: string;
  /** The platform's or the caller's id of this run; by default a new one. */
  readonly runId?: string | undefined;
  /** What one user message or one job asked for. By default the run's id. */
  readonly turn?: string | undefined;
  /** What to do when another run holds the thread. `reject` (default): throws `THREAD_BUSY`, or `RUN_IN_PROGRESS` for the same run. */
  readonly onBusy?: "reject" | undefined;
  /** False: a scope and a turn for effects, without the lock and without a fence. Default true. */
  readonly lock?: boolean | undefined;
  /** Default 30,000, at least 1,000. */
  readonly leaseMs?: number | undefined;
  /** Passed on to the run's own signal. */
  readonly signal?: AbortSignal | undefined;
}

const optionNames: Record<keyof RunOptions, true> = {
  thread: true,
  runId: true,
  turn: true,
  onBusy: true,
  lock: true,
  leaseMs: true,
  signal: true,
};

/** One pass over a thread. It is passed on by hand, to whatever must be fenced by it. */
export interface Run {
  readonly thread: string;
  readonly runId: string;
  readonly turn: string;
  /** Aborts when the lock is lost, when the caller's signal does, and when `close` runs out of patience. */
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

export async function withRun<Result>(
  kernel: Kernel,
  options: RunOptions,
  body: (run: Run) => Result | Promise<Result>,
): Promise<Result> {
  checkOptions("withRun", options, optionNames);
  const { thread, runId = randomId(), turn = runId, lock = true, leaseMs = 30_000, signal } = options;
  checkBody("withRun(options, body)", body);
  checkScope("thread", thread);
  checkScope("runId", runId);
  checkScope("turn", turn);
  checkLeaseMs(leaseMs);
  if (![undefined, "reject"].includes(options.onBusy))
    throw new TwiceproofError("INVALID_ARGUMENT", '`onBusy` must be "reject".');

  async function pass(locked: Locked | undefined): Promise<Result> {
    const ended = new AbortController();
    const place: RunPlace = {
      scope: thread,
      turn,
      runId,
      fence: locked?.ref ?? null,
      signal: locked?.signal ?? signal,
      ended: ended.signal,
    };
    const run: Run = {
      thread,
      runId,
      turn,
      signal: place.signal ?? ended.signal,
      token: locked?.ref.token ?? null,
      fence: locked?.ref ?? null,
      once: createOnce(kernel, place),
      recorded: createRecorded(kernel, place),
    };
    try {
      return await body(run);
    } finally {
      ended.abort();
    }
  }

  refuseWhenClosing(kernel);
  if (!lock) return await underWay(kernel, () => pass(undefined));
  const wanted = lockWanted(kernel, "thread", { key: thread, name: "run", scope: thread, turn, runId, leaseMs });
  return await underLock(
    kernel,
    {
      wanted,
      what: "A run on this thread",
      waitMs: 0,
      signal,
      busy: (record) => threadBusy(record, runId),
      lost: (details) => runOvertaken(runId, details),
      asked: () => askedToStop("RUN_LOST", wanted.id),
      // A run is fenced: what it still does is refused, so its thread is freed at once.
      giveUp: (ref) => abandon(kernel, ref, "shutdown"),
    },
    pass,
  );
}
