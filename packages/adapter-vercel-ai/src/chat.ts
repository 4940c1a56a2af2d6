import type { TwiceproofError } from "@twiceproof/core";
import { type Guard, isEqual } from "./guard.ts";
import type { Place } from "./place.ts";
import { invalid } from "./problems.ts";

/** A call that ended with `EFFECT_IN_DOUBT`, or with `EFFECT_RUNNING`: its outcome is not known here. */
export interface ToolDoubt {
  readonly tool: string;
  readonly toolCallId: string | undefined;
  readonly error: TwiceproofError;
}

/** What one chat's run knows of its tools. */
export interface Chat {
  /** What `withRun` was given. */
  readonly ownTurn: string | undefined;
  /** Undefined until `repair` is told the messages, unless there is one of the user's own. */
  turn: string | undefined;
  /** By name in the set of tools. */
  readonly guards: Map<string, Guard>;
  /** `print`: the canonical input, where the call's id is part of its identity. */
  readonly doubts: (ToolDoubt & { readonly print: string | undefined })[];
  /** Calls under way: the run outlives them, also when nobody waits for them any more. */
  readonly pending: Set<Promise<unknown>>;
  /** Tools that `repair` met before they were guarded: it had to take them for tools without a key. */
  readonly guessed: Set<string>;
  /** The run's. */
  readonly signal: AbortSignal;
  /** The body of the run is through, and what it left running is waited for. */
  over: boolean;
}

/** A symbol of the registry, because bundles come twice. The number goes up when the shape changes. */
const chatKey = Symbol.for("twiceproof.chat/1");

export function newChat(ownTurn: string | undefined, signal: AbortSignal): Chat {
  const guards = new Map();
  return { ownTurn, turn: ownTurn, guards, doubts: [], pending: new Set(), guessed: new Set(), signal, over: false };
}

export function attach<R extends object>(run: R, chat: Chat): R {
  return Object.defineProperty(run, chatKey, { value: chat });
}

export function chatOf(place: Place): Chat | undefined {
  return "run" in place ? (place.run as { readonly [chatKey]?: Chat })[chatKey] : undefined;
}

/** @throws TwiceproofError `INVALID_ARGUMENT` for a second tool of this name: a name is part of what is recorded. */
export function enlist({ guards, guessed }: Chat, name: string, guard: Guard): void {
  const known = guards.get(name);
  if (known !== undefined && (known.execute !== guard.execute || !isEqual(known, guard)))
    throw invalid(
      name,
      "two tools of this run have this name, or one has two sets of rules. Guard it once, and share it.",
    );
  const { key } = guard.rules;
  if (guessed.has(name) && (key !== undefined || guard.name !== name || guard.effect?.types !== undefined))
    throw invalid(
      name,
      `\`run.repair\` cannot find its calls without its ${key ? "`key`" : "effect"}: call \`run.tools\` first.`,
    );
  guards.set(name, guard);
}

/** Once for each call: a chat may be repaired twice, and a call that was met there may be made again. */
export function noteDoubt({ doubts }: Chat, doubt: Chat["doubts"][number]): void {
  const { tool, toolCallId, error } = doubt;
  if (!doubts.some((it) => it.tool === tool && it.toolCallId === toolCallId && it.error.id === error.id))
    doubts.push(doubt);
}

/**
 * With `identity: "call"` a call with a new id is another call, but not while an equal one of this run is in doubt: a
 * model that tries it again must not get past the doubt.
 */
export function doubtOf({ doubts }: Chat, tool: string, print: string): TwiceproofError | undefined {
  return doubts.find((doubt) => doubt.tool === tool && doubt.print === print)?.error;
}

/** Ends the run before the model is asked again. @throws the first doubt's error */
export function throwIfInDoubt({ doubts }: Chat): void {
  const [first] = doubts;
  if (first !== undefined) throw first.error;
}

/** Resolves when no call is under way. */
export async function quiet({ pending }: Chat): Promise<void> {
  while (pending.size > 0) await Promise.allSettled(pending);
}
