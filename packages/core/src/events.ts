/**
 * What `onEvent` is told. No key, input or result: safe for logs and metrics. What it throws is swallowed, and the work
 * does not wait for it.
 */
export interface TwiceproofEvent {
  /**
   * `result-not-kept`: recorded as completed, and the result could not be encoded or is over `maxResultBytes`; later callers
   * get `EFFECT_RESULT_UNAVAILABLE`.
   *
   * `executing`: the body of an effect is about to start; it starts nowhere else. (A `read` claims nothing and tells nothing.) `replayed`: a recorded result was
   * served. `in-doubt`: a caller gets `EFFECT_IN_DOUBT`. `disputed`: a late result contradicts a verdict; look at the
   * history. `lost`: the claim was decided or replaced by somebody else while its holder worked.
   *
   * Of threads and locks (`name` is then "run" or "lock"), `waiting`: somebody entered the line; `token` is of whoever holds it.
   * `cancel-requested`: this process asked the holder to stop. `unlocked`: this process took the thread from its holder.
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
    | "lost"
    | "waiting"
    | "cancel-requested"
    | "unlocked";
  readonly name: string;
  readonly id: string;
  readonly token: number;
  readonly scope: string | null;
  readonly turn: string | null;
  readonly runId: string | null;
}
