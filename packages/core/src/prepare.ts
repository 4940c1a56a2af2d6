import { checkRules, type Effect, parseInput } from "./effect.ts";
import { TwiceproofError } from "./errors.ts";
import { fingerprint } from "./fingerprint.ts";
import { type Identity, identify, type Place } from "./identity.ts";
import type { Kernel } from "./kernel.ts";
import type { ClaimRef } from "./store.ts";
import { checkName, checkOptions } from "./validate.ts";

export interface CallOptions extends Place {
  /** Goes before the effect's own `key`. */
  readonly key?: string | undefined;
  /** Goes before the effect's own `waitMs`. */
  readonly waitMs?: number | undefined;
  /** Stops the waiting, and is passed on to the body. An effect that was started is awaited and recorded all the same. */
  readonly signal?: AbortSignal | undefined;
}

/** What a run adds to each of its calls. */
export interface RunPlace {
  readonly scope: string;
  readonly turn: string;
  readonly runId: string;
  readonly fence: ClaimRef | null;
  readonly signal: AbortSignal | undefined;
  /** Whether the run's body is through. */
  readonly isOver: () => boolean;
}

const callNames: Record<keyof CallOptions, true> = {
  key: true,
  scope: true,
  turn: true,
  callId: true,
  waitMs: true,
  signal: true,
};
/** A call of a defined effect, checked and identified. */
interface Prepared {
  readonly input: unknown;
  /** Undefined for a read. */
  readonly identity: Identity | undefined;
  readonly place: Place;
}

/** `what`: the public function, as messages name it. */
export async function prepare(
  kernel: Kernel,
  run: RunPlace | undefined,
  what: string,
  effect: Effect<unknown, unknown, unknown>,
  raw: unknown,
  options: CallOptions,
): Promise<Prepared> {
  checkOptions(what, options, callNames);
  checkName(effect.name);
  checkRules(effect);
  const print = effect.kind === "read" ? "" : fingerprint(effect.name, raw);
  const input = await parseInput(effect, raw);
  const place = placed(run, options);
  if (effect.kind === "read") return { input, identity: undefined, place };
  const identity = identify(kernel.namespace, effect.name, effect, print, input, place, options.key);
  return { input, identity, place };
}

export function placed(run: RunPlace | undefined, { scope = run?.scope, turn = run?.turn, callId }: Place): Place {
  if (run !== undefined && scope !== run.scope)
    throw new TwiceproofError("INVALID_ARGUMENT", "A run's calls have the run's `scope`: its thread.");
  return { scope, turn, callId };
}
