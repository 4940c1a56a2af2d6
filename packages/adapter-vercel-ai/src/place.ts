import type { CallOptions, Effect, Recorded, Run, Twiceproof } from "@twiceproof/core";
import { checkScope } from "@twiceproof/core/adapter";
import { invalid, named, turnMissing } from "./problems.ts";

/** Where calls happen: in a run, or under a scope and a turn given by hand. */
export type Place =
  | { readonly run: Pick<Run, "once" | "recorded"> }
  | {
      readonly tp: Twiceproof;
      /** What the turn belongs to: the tenant's chat. From the server, never from the page. */
      readonly scope: string;
      /** What one user message asked for: `turnOf(messages)`. */
      readonly turn: string;
    };

export const placeNames: Record<"run" | "tp" | "scope" | "turn", true> = {
  run: true,
  tp: true,
  scope: true,
  turn: true,
};

export function placeOf(options: Place): Place {
  if ("run" in options && options.run !== undefined) return { run: options.run };
  const { tp, scope, turn } = options as Extract<Place, { tp: unknown }>;
  return { tp, scope, turn };
}

/** A tool with a key of its own needs no turn. @throws TwiceproofError `INVALID_ARGUMENT`, `IDENTITY_MISSING` */
export function checkPlace(name: string, place: Place, keyed: boolean): void {
  if ("run" in place) {
    if (typeof place.run?.once !== "function") throw invalid(name, "`run` is none: it comes from `withRun`.");
    return;
  }
  const { tp, scope, turn } = place;
  if (typeof tp?.once !== "function") throw invalid(name, "it needs a `run`, or `tp` with `scope` and `turn`.");
  if ((scope === undefined || turn === undefined) && !keyed) throw turnMissing(name);
  named(name, () => {
    if (scope !== undefined) checkScope("scope", scope);
    if (turn !== undefined) checkScope("turn", turn);
  });
}

export function isSamePlace(one: Place, other: Place): boolean {
  if ("run" in one) return "run" in other && one.run === other.run;
  return "tp" in other && one.tp === other.tp && one.scope === other.scope && one.turn === other.turn;
}

export async function onceIn(place: Place, effect: Effect, input: unknown, options: CallOptions): Promise<unknown> {
  if ("run" in place) return await place.run.once(effect, input, options);
  const { tp, scope, turn } = place;
  return await tp.once(effect, input, { scope, turn, ...options });
}

export async function recordedIn(
  place: Place,
  effect: Effect,
  input: unknown,
  options: CallOptions,
): Promise<Recorded> {
  if ("run" in place) return await place.run.recorded(effect, input, options);
  const { tp, scope, turn } = place;
  return await tp.recorded(effect, input, { scope, turn, ...options });
}
