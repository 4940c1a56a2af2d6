import { TwiceproofError } from "./errors.ts";
import { randomId } from "./id.ts";
import { checkCount, checkDuration, checkLeaseMs, checkOptions, checkScope } from "./validate.ts";

export interface RunOptions {
  /** What the run works on. One run per thread at a time, in this namespace, on any number of machines. */
  readonly thread: string;
  /** The platform's or the caller's id of this run; by default a new one. */
  readonly runId?: string | undefined;
  /** What one user message or one job asked for. By default the run's id. */
  readonly turn?: string | undefined;
  /**
   * What to do when another run holds the thread, or waits for it. `reject` (default): throws `THREAD_BUSY` at once. `wait`:
   * waits in line, first come first served on all workers. `interrupt`: asks the run that holds it to stop, and waits in
   * line until it has. Never waits for the very same run: `RUN_IN_PROGRESS`.
   */
  readonly onBusy?: "reject" | "wait" | "interrupt" | undefined;
  /** How long to `wait`; then `THREAD_WAIT_TIMEOUT`. Default 10,000. */
  readonly maxWaitMs?: number | undefined;
  /** The most runs that may wait for one thread; one more gets `THREAD_QUEUE_FULL`. Default 10. */
  readonly maxQueue?: number | undefined;
  /** How long an `interrupt` waits for the other run to stop and release; then `THREAD_WAIT_TIMEOUT`. Default 10,000. */
  readonly graceMs?: number | undefined;
  /** Told how many runs are before this one, when it enters the line and whenever that changes. What it throws is swallowed. */
  readonly onWait?: ((place: { readonly ahead: number }) => void) | undefined;
  /**
   * Keeps what the body returned, under `runId`: the same run asked for again gets that, and is not run a second time.
   * Default: when a `runId` is given.
   */
  readonly remember?: boolean | undefined;
  /** False: a scope and a turn for effects, without the lock and without a fence, and nothing is remembered. Default true. */
  readonly lock?: boolean | undefined;
  /** Default 30,000, at least 1,000. */
  readonly leaseMs?: number | undefined;
  /** Stops the waiting, and is passed on to the run's own signal. */
  readonly signal?: AbortSignal | undefined;
}

const optionNames: Record<keyof RunOptions, true> = {
  thread: true,
  runId: true,
  turn: true,
  onBusy: true,
  maxWaitMs: true,
  maxQueue: true,
  graceMs: true,
  onWait: true,
  remember: true,
  lock: true,
  leaseMs: true,
  signal: true,
};

const strategies: Record<NonNullable<RunOptions["onBusy"]>, true> = { reject: true, wait: true, interrupt: true };

/** With every default filled in. */
export type RunRules = { readonly [Name in keyof RunOptions]-?: NonNullable<RunOptions[Name]> | Undefined<Name> };
type Undefined<Name> = Name extends "signal" | "onWait" ? undefined : never;

/** @throws TwiceproofError `INVALID_ARGUMENT` */
export function runRules(options: RunOptions): RunRules {
  checkOptions("withRun", options, optionNames);
  const { thread, runId = randomId(), turn = runId, lock = true, onBusy = "reject", signal, onWait } = options;
  const { maxWaitMs = 10_000, maxQueue = 10, graceMs = 10_000, leaseMs = 30_000 } = options;
  const { remember = options.runId !== undefined } = options;
  checkScope("thread", thread);
  checkScope("runId", runId);
  checkScope("turn", turn);
  checkLeaseMs(leaseMs);
  checkDuration("maxWaitMs", maxWaitMs);
  checkDuration("graceMs", graceMs);
  checkCount("maxQueue", maxQueue);
  if (!Object.hasOwn(strategies, onBusy)) throw mustBe("onBusy", Object.keys(strategies).join(", "));
  if (onWait !== undefined && typeof onWait !== "function") throw mustBe("onWait", "a function");
  return { thread, runId, turn, lock, onBusy, signal, onWait, maxWaitMs, maxQueue, graceMs, leaseMs, remember };
}

function mustBe(label: string, what: string): TwiceproofError {
  return new TwiceproofError("INVALID_ARGUMENT", `\`${label}\` must be ${what}.`);
}
