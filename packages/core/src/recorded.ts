import { read } from "./claim.ts";
import type { Effect } from "./effect.ts";
import type { TwiceproofError } from "./errors.ts";
import type { Kernel } from "./kernel.ts";
import { type CallOptions, prepare, type RunPlace } from "./prepare.ts";
import { inDoubt, keyReused, notExecutedError, refusal, running } from "./problems.ts";
import { replay } from "./replay.ts";
import { decodeWhy } from "./why.ts";

/** What is on record of a call. `error` is what `once` would throw of it, and its message what a model may be told. */
export type Recorded<Result = unknown> =
  /** Never claimed, or its row was removed. */
  { readonly state: "none" } | (Found<Result> & FoundWhere);

type Found<Result> =
  | { readonly state: "completed"; readonly result: Result }
  | { readonly state: "unavailable"; readonly error: TwiceproofError }
  | { readonly state: "running" | "in-doubt" | "failed" | "released" | "key-reused"; readonly error: TwiceproofError };

interface FoundWhere {
  /** Of the call that was made: its thread. A key is global, so with one it may be somebody else's. Null: made without a scope. */
  readonly scope: string | null;
}

/**
 * What is on record of this call, without making it: nothing is claimed, awaited or asked of `reconcile`.
 *
 * @throws TwiceproofError what `once` throws of its arguments; `STORE_UNAVAILABLE`
 */
export type RecordedOf = <Raw, Input, Result>(
  effect: Effect<Raw, Input, Result>,
  input: NoInfer<Raw>,
  options?: CallOptions,
) => Promise<Recorded<Result>>;

export function createRecorded(kernel: Kernel, run?: RunPlace): RecordedOf {
  async function recorded(
    effect: Effect<unknown, unknown, unknown>,
    input: unknown,
    options: CallOptions = {},
  ): Promise<Recorded> {
    const { identity } = await prepare(kernel, run, "recorded", effect, input, options);
    if (identity === undefined) return { state: "none" };
    const { name } = effect;
    const { id, fingerprint } = identity;
    const call = { id, name, codec: kernel.codecWith(effect.types) };
    const record = await read(kernel, id);
    if (record === null) return { state: "none" };
    const { scope } = record;
    if (record.fingerprint !== fingerprint) return { state: "key-reused", error: keyReused(call, record), scope };
    switch (record.state) {
      case "completed":
        return await replay(call, record).then(
          (result) => ({ state: "completed", result, scope }) as const,
          (error: TwiceproofError) => ({ state: "unavailable", error, scope }) as const,
        );
      case "claimed":
        return { state: "running", error: running(call, record), scope };
      case "in-doubt":
        return { state: "in-doubt", error: inDoubt(call, { record }), scope };
      case "failed":
        return { state: "failed", error: refusal(call, await decodeWhy(kernel.codec, record.payload)), scope };
      case "released":
        return {
          state: "released",
          error: notExecutedError(call, await decodeWhy(kernel.codec, record.payload)),
          scope,
        };
      case "lapsed":
        // Of locks only.
        return { state: "none" };
    }
  }

  return recorded as RecordedOf;
}
