/**
 * Codes are stable: they are what code, dashboards and alerts may depend on. Messages are not.
 */
export type ErrorCode =
  /** Started, no result. It may have happened. Never an invitation to try again. */
  | "EFFECT_IN_DOUBT"
  /** Running elsewhere, and not done within `waitMs`: ask again after `retryAfterMs`. */
  | "EFFECT_RUNNING"
  /** The key stands for another effect or another input. */
  | "EFFECT_KEY_REUSED"
  /** The outside system refused it for good; only a recorded `reopen` frees the key. */
  | "EFFECT_REFUSED"
  /** It provably did not happen; the key is free again. */
  | "EFFECT_NOT_EXECUTED"
  /** It happened, and its result was not kept. */
  | "EFFECT_RESULT_UNAVAILABLE"
  /** An effect that waits for itself, or a run that waits for its own thread. */
  | "WAITS_FOR_ITSELF"
  /** Another run holds the thread. */
  | "THREAD_BUSY"
  /** This very run is already running. */
  | "RUN_IN_PROGRESS"
  /** The run was replaced, given up or is over: nothing may start under it, and what it returned must not count as stored. */
  | "RUN_LOST"
  /** Somebody else holds the lock of `exclusive`. */
  | "LOCK_BUSY"
  /** The lock of `exclusive` was lost while its body ran. */
  | "LOCK_LOST"
  /** No key, and nothing to derive one from. */
  | "IDENTITY_MISSING"
  /** A tool of a set of which nothing says what kind it is. */
  | "TOOL_UNCLASSIFIED"
  | "INVALID_INPUT"
  | "INVALID_ARGUMENT"
  /** `close` was called. */
  | "CLOSED"
  /** The store could not be reached, or failed; nothing was executed. */
  | "STORE_UNAVAILABLE"
  | StoreSetupCode;

/** Trying again does not help: somebody has to change the set-up. */
export type StoreSetupCode =
  | "STORE_NOT_A_DATABASE"
  | "STORE_PATH_MISSING"
  | "STORE_FILE_REPLACED"
  | "STORE_SCHEMA_MISSING"
  | "STORE_SCHEMA_NEWER"
  | "STORE_READ_ONLY"
  | "STORE_NETWORK_PATH"
  | "STORE_DRIVER_MISSING"
  | "STORE_CLOSED";

const brand = Symbol.for("twiceproof.error");

export interface ErrorDetails {
  readonly cause?: unknown;
  /** For the operator: commands, worker, times. Never shown to a model or on a page. */
  readonly help?: string;
  /** Eight hex digits by which people find the claim. */
  readonly ref?: string;
  /** The claim's id. */
  readonly id?: string;
  readonly retryAfterMs?: number;
  /** What is known of a lock's or an effect's holder. */
  readonly holder?: HolderFacts;
  /** What the body returned, when it could not be recorded. */
  readonly value?: unknown;
}

export interface HolderFacts {
  readonly runId: string | null;
  readonly state: "claimed" | "lapsed" | "in-doubt";
  readonly ageMs: number;
  readonly heartbeatAgeMs: number;
  readonly leaseExpiresInMs: number;
  readonly liveness: "live" | "expired";
}

/**
 * `message` is safe for a model and for a page: what happened, that it may have happened, what not to do. It carries no
 * key, input, result or address. `status` is 409, which the retry policies of HTTP clients and agent frameworks leave alone.
 */
export class TwiceproofError extends Error {
  override readonly name = "TwiceproofError";
  readonly status = 409;
  readonly code: ErrorCode;
  declare readonly help: string;
  declare readonly ref: string | undefined;
  declare readonly id: string | undefined;
  declare readonly retryAfterMs: number | undefined;
  declare readonly holder: HolderFacts | undefined;
  declare readonly value: unknown;

  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}) {
    super(message, "cause" in details ? { cause: details.cause } : undefined);
    this.code = code;
    Object.defineProperty(this, brand, { value: true });
    // Not enumerable: loggers and frameworks that spread or serialise an error must not carry these to a model.
    for (const name of ["help", "ref", "id", "retryAfterMs", "holder", "value"] as const)
      Object.defineProperty(this, name, { value: name === "help" ? (details.help ?? "") : details[name] });
  }
}

/** Ours, also when the package was bundled twice. Does not look into causes. */
export function isTwiceproofError(error: unknown): error is TwiceproofError {
  return typeof error === "object" && error !== null && brand in error;
}

/** Ours, on the error itself, in its chain of causes, or in an `AggregateError`: frameworks wrap what tools throw. */
export function findTwiceproofError(error: unknown, ...codes: readonly ErrorCode[]): TwiceproofError | undefined {
  const seen = new Set<unknown>();
  const queue = [error];
  for (const next of queue) {
    if (typeof next !== "object" || next === null || seen.has(next)) continue;
    seen.add(next);
    try {
      if (isTwiceproofError(next) && (codes.length === 0 || codes.includes(next.code))) return next;
      if ("cause" in next) queue.push(next.cause);
      if ("errors" in next && Array.isArray(next.errors)) for (const member of next.errors) queue.push(member);
    } catch {
      // It stands in catch blocks: an error whose properties throw is none of ours.
    }
  }
  return undefined;
}

export const isInDoubt = (error: unknown): boolean => findTwiceproofError(error, "EFFECT_IN_DOUBT") !== undefined;
export const isRunning = (error: unknown): boolean => findTwiceproofError(error, "EFFECT_RUNNING") !== undefined;
export const isThreadBusy = (error: unknown): boolean =>
  findTwiceproofError(error, "THREAD_BUSY", "RUN_IN_PROGRESS") !== undefined;
export const isKeyReused = (error: unknown): boolean => findTwiceproofError(error, "EFFECT_KEY_REUSED") !== undefined;
export const isRefused = (error: unknown): boolean => findTwiceproofError(error, "EFFECT_REFUSED") !== undefined;
export const isNotExecuted = (error: unknown): boolean =>
  findTwiceproofError(error, "EFFECT_NOT_EXECUTED") !== undefined;
export const isLost = (error: unknown): boolean => findTwiceproofError(error, "RUN_LOST", "LOCK_LOST") !== undefined;

/** Asking a store again does not mend it. Whatever else a store throws may pass by itself. */
export function isFinal(error: unknown): error is TwiceproofError {
  return isTwiceproofError(error) && error.code !== "STORE_UNAVAILABLE";
}
