import { types } from "node:util";
import type { Call } from "./call.ts";
import { type Nesting, nest } from "./chain.ts";
import { spend } from "./classify.ts";
import { checkRules, type Effect, type EffectContext, type EffectRules, ruleNames } from "./effect.ts";
import { TwiceproofError } from "./errors.ts";
import { fingerprint } from "./fingerprint.ts";
import { idempotencyKey, randomId } from "./id.ts";
import { type Identity, identify, type Place } from "./identity.ts";
import { type Kernel, refuseWhenClosing, underWay } from "./kernel.ts";
import { perform } from "./perform.ts";
import { type CallOptions, placed, prepare, type RunPlace } from "./prepare.ts";
import { runLost } from "./problems-lock.ts";
import { checkName, checkOptions } from "./validate.ts";

/** For the plain form. `name` and `input` make the fingerprint: the same key with another one is refused. */
export interface OnceOptions<Result = unknown>
  extends Omit<EffectRules<unknown, Result>, "key" | "identity">,
    Omit<Place, "callId"> {
  /** For people and lists, and part of the fingerprint. By default what stands before the first colon of the key. */
  readonly name?: string | undefined;
  readonly input?: unknown | undefined;
  /** Stops the waiting, and is passed on to the body. An effect that was started is awaited and recorded all the same. */
  readonly signal?: AbortSignal | undefined;
}

export interface Once {
  /**
   * Runs `body` unless the key was done before, anywhere; then gives back what was recorded.
   *
   * @throws TwiceproofError `EFFECT_IN_DOUBT`, `EFFECT_RUNNING`, `EFFECT_KEY_REUSED`, `EFFECT_REFUSED`, `EFFECT_NOT_EXECUTED`,
   * `EFFECT_RESULT_UNAVAILABLE`, `WAITS_FOR_ITSELF`, `RUN_LOST`, `CLOSED`, `INVALID_ARGUMENT`, or one about the store;
   * a TypeError for an `input` without a canonical form; the reason of an aborted signal
   */
  <Result>(
    key: string,
    body: (context: EffectContext) => Result | Promise<Result>,
    options?: OnceOptions<NoInfer<Result>>,
  ): Promise<Result>;
  /**
   * The same for a defined effect. Also throws `INVALID_INPUT` and `IDENTITY_MISSING`. (Last, because TypeScript explains a
   * misfit by the last overload: this one has more to get wrong.)
   */
  <Raw, Input, Result>(effect: Effect<Raw, Input, Result>, input: NoInfer<Raw>, options?: CallOptions): Promise<Result>;
}

const defaults = { settleDelayMs: 5_000, leaseMs: 30_000, waitMs: 30_000 };

const { key: _key, identity: _identity, ...plainRuleNames } = ruleNames;
const plainNames: Record<keyof OnceOptions, true> = {
  ...plainRuleNames,
  name: true,
  input: true,
  scope: true,
  turn: true,
  signal: true,
};

export function createOnce(kernel: Kernel, run?: RunPlace): Once {
  async function once(
    what: string | Effect<unknown, unknown, unknown>,
    second: unknown,
    third: OnceOptions & CallOptions = {},
  ): Promise<unknown> {
    try {
      return await underWay(kernel, () => nest((nesting) => checked(nesting, what, second, third)));
    } catch (error) {
      // Whatever leaves here is about this call. Inside of another effect it proves nothing about that one (promise 19).
      spend(error);
      throw error;
    }
  }

  async function checked(
    nesting: Nesting,
    what: string | Effect<unknown, unknown, unknown>,
    second: unknown,
    options: OnceOptions & CallOptions,
  ): Promise<unknown> {
    refuseWhenClosing(kernel);
    if (run?.isOver()) throw runLost(run.runId);
    return typeof what === "string"
      ? await plain(nesting, what, second as (context: EffectContext) => unknown, options)
      : await defined(nesting, what, second, options);
  }

  async function plain(
    nesting: Nesting,
    key: string,
    body: (context: EffectContext) => unknown,
    options: OnceOptions,
  ): Promise<unknown> {
    if (typeof body !== "function") throw invalid("`once(key, body)` needs a function as its second argument");
    refuseGenerator(body);
    checkOptions("once(key, body)", options, plainNames);
    const { name = nameOf(key), input } = options;
    checkName(name);
    checkRules(options);
    const place = placed(run, options);
    const identity = identify(kernel.namespace, name, {}, fingerprint(name, input), input, place, key);
    return await start(nesting, name, options, input, identity, place, options.signal, body);
  }

  async function defined(
    nesting: Nesting,
    effect: Effect<unknown, unknown, unknown>,
    raw: unknown,
    options: CallOptions,
  ): Promise<unknown> {
    if (typeof effect?.run !== "function")
      throw invalid("`once` takes a key and a function, or an effect and its input");
    refuseGenerator(effect.run);
    const prepared = await prepare(kernel, run, "once(effect, input)", effect, raw, options);
    const body = (context: EffectContext) => effect.run(prepared.input, context);
    if (prepared.identity === undefined) return await readOnly(body, options.signal ?? run?.signal);
    const rules = options.waitMs === undefined ? effect : { ...effect, waitMs: options.waitMs };
    checkRules(rules);
    const { input, identity, place } = prepared;
    return await start(nesting, effect.name, rules, input, identity, place, options.signal, body);
  }

  async function start(
    nesting: Nesting,
    name: string,
    rules: EffectRules<never>,
    input: unknown,
    identity: Identity,
    place: Place,
    signal: AbortSignal | undefined,
    body: (context: EffectContext) => unknown,
  ): Promise<unknown> {
    if (rules.kind === "read") return await readOnly(body, signal ?? run?.signal);
    const reconcile = rules.reconcile as EffectRules["reconcile"];
    const call: Call<unknown> = {
      ...identity,
      name,
      scope: place.scope ?? null,
      turn: place.turn ?? null,
      runId: run?.runId ?? null,
      fence: run?.fence ?? null,
      kind: rules.kind ?? "effect",
      classify: rules.classify,
      reconcile: reconcile && ((context) => reconcile(input, context)),
      settleDelayMs: kernel.settleDelayMs ?? rules.settleDelayMs ?? defaults.settleDelayMs,
      leaseMs: rules.leaseMs ?? defaults.leaseMs,
      waitMs: rules.waitMs ?? defaults.waitMs,
      keepResult: rules.store !== "fact",
      codec: kernel.codecWith(rules.types),
      signal,
      runSignal: run?.signal,
      body,
    };
    return await perform(kernel, call, nesting);
  }

  return once as Once;
}

/** A read claims nothing and has no id. Its idempotency key is a new one each time: an old one could bring an old answer. */
async function readOnly(
  body: (context: EffectContext) => unknown,
  signal = new AbortController().signal,
): Promise<unknown> {
  return await body({ idempotencyKey: idempotencyKey(randomId()), signal, id: "", token: 0 });
}

/** The key itself may hold an address; a name goes into messages that models read. So only what looks like a name. */
function nameOf(key: string): string {
  return (typeof key === "string" && /^([a-z][\w./-]{0,63}):/i.exec(key)?.[1]) || "effect";
}

/** It would be recorded as done before anything happened. */
function refuseGenerator(body: unknown): void {
  if (types.isGeneratorFunction(body)) throw invalid("The body of an effect must not be a generator function");
}

function invalid(rule: string): TwiceproofError {
  return new TwiceproofError("INVALID_ARGUMENT", `${rule}.`);
}
