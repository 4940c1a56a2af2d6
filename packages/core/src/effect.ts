import type { StandardSchemaV1 } from "@standard-schema/spec";
import type { Answer, Classify } from "./classify.ts";
import { type CodecType, checkTypes } from "./codec.ts";
import { TwiceproofError } from "./errors.ts";
import { safePart } from "./plain.ts";
import { checkDuration, checkLeaseMs, checkName, checkOptions, checkWaitMs } from "./validate.ts";

/** What the body of an effect gets. */
export interface EffectContext {
  /** For the outside API: the same on every attempt of this effect. 36 characters. */
  readonly idempotencyKey: string;
  /**
   * Aborts when the caller's signal does, when the run lost its lock, when the claim was decided by somebody else, and
   * when `close` runs out of patience. What the body does then is recorded all the same.
   */
  readonly signal: AbortSignal;
  /** The claim's id, as in `doubts.list()`. */
  readonly id: string;
  /** Grows with each new claim of the key: a fencing token for systems that take one. */
  readonly token: number;
}

/** What `reconcile` gets beside the input. */
export interface ReconcileContext {
  readonly idempotencyKey: string;
  readonly id: string;
  readonly token: number;
  /** When the doubtful attempt began, by the store's clock. */
  readonly claimedAt: Date;
  /** Aborts when the caller's or the run's does, when `waitMs` is over (but not within the first second), and when `close` runs out of patience. */
  readonly signal: AbortSignal;
}

/** The rules of an effect: the same names everywhere, whether it is defined, called or adapted. */
export interface EffectRules<Input = unknown, Result = unknown> {
  /**
   * `effect` (default): never run again after a doubt. `idempotent`: may run again after a doubt.
   * `read`: passed through, nothing is claimed or recorded.
   */
  readonly kind?: "effect" | "idempotent" | "read" | undefined;
  /** The business key: the strongest identity, one per intended effect in a namespace, so it should begin with what it is about: `charge:42`. Up to 512 UTF-8 bytes. */
  readonly key?: ((input: Input) => string) | undefined;
  /** Without a key: scope, turn, name and input make the identity; `call` adds the call's id. */
  readonly identity?: "input" | "call" | undefined;
  /** What a throw proves. By default nothing: the effect is in doubt. */
  readonly classify?: Classify | undefined;
  /** Asks the outside system what became of a doubtful attempt. */
  readonly reconcile?:
    | ((input: Input, context: ReconcileContext) => Answer<Result> | Promise<Answer<Result>>)
    | undefined;
  /** How long the same doubt must have stood before "not done" counts, so that a request on the wire can land. Default 5,000. */
  readonly settleDelayMs?: number | undefined;
  /** How long the claim counts as alive without a heartbeat. Default 30,000, at least 1,000. */
  readonly leaseMs?: number | undefined;
  /** How long a second caller waits for the first one's result. Default 30,000. */
  readonly waitMs?: number | undefined;
  /** `fact`: the result is not kept; later callers get `EFFECT_RESULT_UNAVAILABLE`. */
  readonly store?: "result" | "fact" | undefined;
  /** What results may contain beside JSON, Date, Map, Set, bigint, bytes, URL and Error: the same list wherever the effect is called or its results are read. */
  readonly types?: readonly CodecType[] | undefined;
}

/** Plain data, made by `defineEffect`. It holds no store, so that it survives a hot reload and may be shared. */
export interface Effect<Raw = unknown, Input = Raw, Result = unknown> extends EffectRules<Input, NoInfer<Result>> {
  readonly name: string;
  /** Any standard schema. Checked before the claim; the body gets its output, the fingerprint is of what the caller passed. */
  readonly input?: StandardSchemaV1<Raw, Input> | undefined;
  readonly run: (input: Input, context: EffectContext) => Result | Promise<Result>;
}

/** Any effect, whatever it takes and gives. */
export interface AnyEffect extends EffectRules<never> {
  readonly name: string;
  readonly input?: StandardSchemaV1 | undefined;
  readonly run: (input: never, context: EffectContext) => unknown;
}

/**
 * @throws TwiceproofError `INVALID_ARGUMENT` naming the rule that is broken.
 */
export function defineEffect<Raw, Input, Result>(
  effect: Effect<Raw, Input, Result> & { readonly input: StandardSchemaV1<Raw, Input> },
): Effect<Raw, Input, Result>;
export function defineEffect<Input, Result>(effect: Effect<Input, Input, Result>): Effect<Input, Input, Result>;
export function defineEffect<Raw, Input, Result>(effect: Effect<Raw, Input, Result>): Effect<Raw, Input, Result> {
  checkOptions("defineEffect", effect, effectNames);
  checkName(effect.name);
  if (typeof effect.run !== "function") throw invalid("an effect needs a function `run`");
  if (effect.input !== undefined && typeof effect.input["~standard"]?.validate !== "function")
    throw invalid("`input` must be a standard schema (zod, valibot, arktype and others make them)");
  checkRules(effect);
  return Object.freeze({ ...effect });
}

export const ruleNames: Record<keyof EffectRules, true> = {
  kind: true,
  key: true,
  identity: true,
  classify: true,
  reconcile: true,
  settleDelayMs: true,
  leaseMs: true,
  waitMs: true,
  store: true,
  types: true,
};

const effectNames: Record<keyof Effect, true> = { name: true, input: true, run: true, ...ruleNames };

const kinds: readonly unknown[] = [undefined, "effect", "idempotent", "read"];

export function checkRules(rules: EffectRules<never>): void {
  if (!kinds.includes(rules.kind)) throw invalid('`kind` must be "effect", "idempotent" or "read"');
  if (![undefined, "input", "call"].includes(rules.identity)) throw invalid('`identity` must be "input" or "call"');
  if (![undefined, "result", "fact"].includes(rules.store)) throw invalid('`store` must be "result" or "fact"');
  for (const name of ["key", "classify", "reconcile"] as const)
    if (rules[name] !== undefined && typeof rules[name] !== "function") throw invalid(`\`${name}\` must be a function`);
  if (rules.types !== undefined) checkTypes(rules.types);
  if (rules.leaseMs !== undefined) checkLeaseMs(rules.leaseMs);
  if (rules.waitMs !== undefined) checkWaitMs(rules.waitMs);
  if (rules.settleDelayMs !== undefined) checkDuration("settleDelayMs", rules.settleDelayMs);
}

/**
 * @throws TwiceproofError `INVALID_INPUT`, before anything is claimed. Its message names the fields, never their values.
 */
export async function parseInput<Raw, Input>(effect: Effect<Raw, Input, unknown>, raw: Raw): Promise<Input> {
  if (effect.input === undefined) return raw as unknown as Input;
  const outcome = await effect.input["~standard"].validate(raw);
  if (outcome.issues === undefined) return outcome.value;
  const fields = outcome.issues.map(({ path = [] }) =>
    ["input", ...path.map((part) => safePart(typeof part === "object" ? part.key : part))].join("."),
  );
  throw new TwiceproofError(
    "INVALID_INPUT",
    `The input of "${effect.name}" does not fit its schema: ${[...new Set(fields)].slice(0, 10).join(", ")}.`,
    { cause: outcome.issues },
  );
}

function invalid(rule: string): TwiceproofError {
  return new TwiceproofError("INVALID_ARGUMENT", `Invalid effect: ${rule}.`);
}
