import type { EffectRules } from "./effect.ts";
import { TwiceproofError } from "./errors.ts";
import { claimId, digest } from "./id.ts";
import { checkKey, checkScope } from "./validate.ts";

/** Where a call happens: given by a run, or by the caller. */
export interface Place {
  /** What the turn belongs to: the thread, the session, the job. */
  readonly scope?: string | undefined;
  /** What one user message or one job asked for: within it, two equal calls are the same call. */
  readonly turn?: string | undefined;
  /** The call's own id; part of the identity only with `identity: "call"`. */
  readonly callId?: string | undefined;
}

export interface Identity {
  readonly id: string;
  readonly key: string;
  readonly fingerprint: string;
}

/**
 * `print`: the fingerprint, taken before anything was awaited: what the caller does to its input later is not the call.
 *
 * @throws TwiceproofError `IDENTITY_MISSING`, `INVALID_ARGUMENT`
 */
export function identify<Input>(
  namespace: string,
  name: string,
  rules: Pick<EffectRules<Input>, "key" | "identity">,
  print: string,
  input: Input,
  place: Place,
  givenKey: string | undefined,
): Identity {
  const { scope, turn, callId } = place;
  if (scope !== undefined) checkScope("scope", scope);
  if (turn !== undefined) checkScope("turn", turn);
  const key = givenKey === undefined ? keyOf(name, rules, input) : givenKey;
  if (key !== undefined) {
    if (givenKey !== undefined) checkKey(key);
    return { id: claimId(namespace, "effect", key), key, fingerprint: print };
  }
  if (scope === undefined || turn === undefined) throw missing(name, "a key, a run, or scope and turn");
  const parts = [scope, turn, name, print];
  if (rules.identity === "call") {
    if (callId === undefined) throw missing(name, 'a call id, which `identity: "call"` needs');
    checkScope("callId", callId);
    parts.push(callId);
  }
  const derived = `${rules.identity ?? "input"}:${digest(...parts)}`;
  return { id: claimId(namespace, "effect", derived), key: derived, fingerprint: print };
}

/** Checked here, where the effect's name is known. */
function keyOf<Input>(name: string, rules: Pick<EffectRules<Input>, "key">, input: Input): string | undefined {
  if (rules.key === undefined) return undefined;
  try {
    const key: unknown = rules.key(input);
    // An async `key` is refused; what becomes of its promise is of no interest.
    if (key instanceof Promise) key.catch(() => undefined);
    checkKey(key);
    return key;
  } catch (cause) {
    const why = cause instanceof TwiceproofError ? cause.message : "its `key` function threw.";
    throw new TwiceproofError("INVALID_ARGUMENT", `The key of this "${name}" cannot be made: ${why}`, { cause });
  }
}

function missing(name: string, what: string): TwiceproofError {
  return new TwiceproofError("IDENTITY_MISSING", `Nothing says which "${name}" this is: it lacks ${what}.`, {
    help: [
      "Give one of these:",
      "  a business key in the effect:   defineEffect({ key: (input) => 'charge:' + input.orderId, … })",
      "  a key at the call:              tp.once(effect, input, { key: … })",
      "  a run:                          tp.withRun({ thread, runId }, (run) => run.once(effect, input))",
      "  scope and turn at the call:     tp.once(effect, input, { scope: thread, turn: messageId })",
    ].join("\n"),
  });
}
