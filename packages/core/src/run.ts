import { abandon, type Wanted } from "./claim.ts";
import { TwiceproofError } from "./errors.ts";
import { lockFingerprint } from "./fingerprint.ts";
import { claimId, randomId } from "./id.ts";
import type { Kernel } from "./kernel.ts";
import { type Locked, underLock } from "./lock.ts";
import type { Once, RunPlace } from "./once.ts";
import { createOnce } from "./once.ts";
import { holderFacts } from "./problems.ts";
import type { ClaimRecord } from "./store.ts";
import { checkLeaseMs, checkOptions, checkScope } from "./validate.ts";

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
  readonly signal?: AbortSignal | undefined;
}

const optionNames = [
  "thread",
  "runId",
  "turn",
  "onBusy",
  "lock",
  "leaseMs",
  "signal",
] as const satisfies readonly (keyof RunOptions)[];

/** One pass over a thread. It is passed on by hand, to whatever must be fenced by it. */
export interface Run {
  readonly thread: string;
  readonly runId: string;
  readonly turn: string;
  /** Aborts when the lock is lost, when the caller's signal does, and when `close` runs out of patience. */
  readonly signal: AbortSignal;
  /** Of the thread's lock: grows with each run. Null without a lock. */
  readonly token: number | null;
  /**
   * Like `tp.once`, and refused in the store once the run has lost its thread (promise 14). Its thread and turn make the
   * identity of effects without a key; a key is global, in a run too.
   */
  readonly once: Once;
}

/**
 * @throws TwiceproofError `THREAD_BUSY`, `RUN_IN_PROGRESS`; nothing was done. `RUN_LOST`: the body returned, but the thread
 * may have been another run's meanwhile.
 */
export async function withRun<Result>(
  kernel: Kernel,
  options: RunOptions,
  body: (run: Run) => Result | Promise<Result>,
): Promise<Result> {
  checkOptions("withRun", options, optionNames);
  const { thread, runId = randomId(), turn = runId, lock = true, leaseMs = 30_000, signal } = options;
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
      once: createOnce(kernel, place),
    };
    try {
      return await body(run);
    } finally {
      ended.abort();
    }
  }

  if (!lock) return await pass(undefined);
  return await underLock(
    kernel,
    {
      wanted: lockWanted(kernel, { key: `run:${thread}`, name: "run", scope: thread, turn, runId, leaseMs }),
      what: "A run on this thread",
      waitMs: 0,
      signal,
      busy: (record) => threadBusy(record, runId),
      lost: (details) =>
        new TwiceproofError(
          "RUN_LOST",
          "This run lost its thread while it was working: another run may have it now. Do not count its result as stored.",
          { help: `Run ${runId}.`, ...details },
        ),
      // A run is fenced: what it still does is refused, so its thread is freed at once.
      giveUp: (ref) => abandon(kernel, ref, "shutdown"),
    },
    pass,
  );
}

export function lockWanted(
  kernel: Kernel,
  lock: Pick<Wanted, "key" | "name" | "scope" | "turn" | "runId" | "leaseMs">,
): Omit<Wanted, "kind" | "fence"> {
  return { ...lock, id: claimId(kernel.namespace, "lock", lock.key), fingerprint: lockFingerprint };
}

function threadBusy(record: ClaimRecord, runId: string): TwiceproofError {
  const same = record.runId === runId;
  return new TwiceproofError(
    same ? "RUN_IN_PROGRESS" : "THREAD_BUSY",
    same ? "This run is in progress already." : "Another run is working on this thread.",
    {
      holder: holderFacts(record),
      retryAfterMs: Math.min(5_000, Math.max(1_000, record.leaseUntil - record.readAt)),
      help: `Held by run ${record.runId} on ${record.holder}.`,
    },
  );
}
