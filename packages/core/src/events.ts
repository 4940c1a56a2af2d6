import type { ClaimKind } from "./store.ts";

/**
 * What `onEvent` is told. No key, input or result: safe for logs and metrics. What it throws is swallowed, and the work
 * does not wait for it.
 */
export interface TwiceproofEvent {
  /**
   * `result-not-kept`: recorded as completed, and the result could not be encoded or is over `maxResultBytes`; later callers
   * get `EFFECT_RESULT_UNAVAILABLE`.
   *
   * `executing`: a body is about to start, and this is the only place where one does. `replayed`: a recorded result was
   * served. `in-doubt`: a caller was told of a doubt. `disputed`: a late result contradicts a verdict; look at the
   * history. `lost`: the claim was decided or replaced by somebody else while its holder worked.
   */
  readonly type:
    | "executing"
    | "completed"
    | "result-not-kept"
    | "failed"
    | "released"
    | "replayed"
    | "in-doubt"
    | "reconciled"
    | "disputed"
    | "lost";
  readonly kind: ClaimKind;
  readonly name: string;
  readonly id: string;
  readonly token: number;
  readonly scope: string | null;
  readonly turn: string | null;
  readonly runId: string | null;
}
