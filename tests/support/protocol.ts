import type { EffectRules, HolderFacts, RunOptions } from "@twiceproof/core";

/** How a worker is started. */
export interface WorkerSetup {
  readonly file: string;
  readonly counter: string;
  /** Turns of all threads, one line each; the product knows nothing of it. */
  readonly transcript: string;
  /** Where it stops, says so, and waits to be passed. */
  readonly stopAt?: readonly Step[];
  readonly storeTimeoutMs?: number;
  /** Added to what its clocks say, from the first moment. */
  readonly clock?: ClockOffsets;
  /** Given to `close` on SIGTERM. */
  readonly graceMs?: number;
}

export interface ClockOffsets {
  readonly wallMs?: number;
  readonly monotonicMs?: number;
}

/**
 * In the order in which a call meets them. The claim and the record are those of effects, and stand for the statement on
 * its way to the store and its answer on its way back; `body` and `acted` are in the effect, before and after the act.
 */
export type Step =
  | "before claim"
  | "after claim"
  | "body"
  | "acted"
  | "before record"
  | "after record"
  | "run"
  | "lock";

/** What a worker says without being asked to stop. */
export type Notice = "ready" | "aborted" | "run aborted" | "closing";

export interface OnceCall extends Pick<EffectRules, "kind" | "leaseMs" | "waitMs"> {
  readonly key: string;
  /** How the body ends after the act; by default it returns. `notExecuted` is thrown before the act. */
  readonly end?: "throw" | "notExecuted";
  /** The effect takes up to so long before the act, and again after it. */
  readonly takesMs?: number;
  /** Blocks the event loop in the effect, before the act, until this file exists. */
  readonly blockUntil?: string;
}

export interface RunCall
  extends Pick<RunOptions, "thread" | "leaseMs" | "onBusy" | "maxWaitMs" | "maxQueue" | "graceMs"> {
  readonly runId: string;
  /** Effects of the run, one after the other, after the step `run`. */
  readonly calls?: readonly OnceCall[];
  readonly blockUntil?: string;
  /** Before the effects it writes a question into the thread's transcript, and an answer up to so long after it. */
  readonly turnTakesMs?: number;
  /** An effect that the body starts and does not wait for. */
  readonly leaves?: OnceCall;
}

export interface LockCall {
  readonly key: string;
  readonly leaseMs?: number;
}

/** What an effect of a worker returns: no two executions return the same. */
export interface Receipt {
  readonly key: string;
  readonly pid: number;
  readonly nonce: string;
}

export interface RunReport {
  readonly token: number | null;
  /** What stood in the transcript when its turn began. */
  readonly read?: readonly string[];
  readonly outcomes: readonly Outcome<Receipt>[];
}

export interface Commands {
  once(call: OnceCall): Promise<Receipt>;
  /** Four at a time, in an order of the worker's own; the answers are in the order of the calls. */
  onceAll(calls: readonly OnceCall[]): Promise<readonly Outcome<Receipt>[]>;
  run(call: RunCall): Promise<RunReport>;
  /** The caller of this run goes away. */
  abort(runId: string): Promise<void>;
  /** What became of the effect that this run left. */
  left(runId: string): Promise<Receipt>;
  /** Starts an effect in a run that is over. */
  late(runId: string, call: OnceCall): Promise<Receipt>;
  exclusive(call: LockCall): Promise<{ readonly token: number }>;
  setClock(offsets: ClockOffsets): Promise<void>;
  /** What the worker asked of its store, and how far its bodies came, in order. */
  trace(): Promise<readonly string[]>;
  /** The longest that its event loop stood still since the last time it was asked, in milliseconds. */
  stoodStillMs(): Promise<number>;
}

export type Outcome<T> = { readonly value: T } | Failure;

export interface Failure {
  readonly code: string;
  readonly message: string;
  /** What the body returned, when the error carries it. */
  readonly returned?: unknown;
  readonly holder?: HolderFacts;
  readonly retryAfterMs?: number;
  readonly queueDepth?: number;
}

export type ToWorker =
  | {
      readonly type: "ask";
      readonly id: number;
      readonly command: keyof Commands;
      readonly arguments: readonly unknown[];
    }
  | { readonly type: "pass"; readonly step: Step; readonly forGood: boolean };

export type FromWorker =
  | { readonly type: "answer"; readonly id: number; readonly outcome: Outcome<unknown> }
  | { readonly type: "at"; readonly step: Step | Notice };
