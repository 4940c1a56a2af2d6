import type { Recorded, Run } from "@twiceproof/core";
import type { Chat } from "./chat.ts";
import { errorText } from "./errors.ts";
import { effectOf, type Guard } from "./guard.ts";
import type { ChatMessage, ToolPart } from "./sdk.ts";
import { turnOf } from "./turn.ts";

/** Looks in the record for calls whose end a saved chat does not tell. The messages that were given are not changed. */
export async function repair<M extends ChatMessage>(
  chat: Chat,
  run: Pick<Run, "recorded">,
  messages: readonly M[],
): Promise<M[]> {
  const asked = messages.findLastIndex(({ role }) => role === "user");
  const { ownTurn } = chat;
  if (ownTurn === undefined && asked >= 0) chat.turn = turnOf(messages);

  return await Promise.all(messages.map(mended));

  async function mended(message: M, index: number): Promise<M> {
    if (message.role !== "assistant" || !Array.isArray(message.parts)) return message;
    const earlier = index < asked;
    if (!message.parts.some((part) => isOpen(part, earlier))) return message;
    const turn = turnAt(index);
    const parts = await Promise.all(
      message.parts.map((part) => (isOpen(part, earlier) ? mendedPart(chat, run, part, turn) : part)),
    );
    return { ...message, parts };
  }

  /** Undefined where a turn of the user's own is not known: of earlier messages. */
  function turnAt(index: number): string | undefined {
    if (ownTurn !== undefined) return index > asked ? ownTurn : undefined;
    const until = messages.slice(0, index);
    return until.some(({ role }) => role === "user") ? turnOf(until) : undefined;
  }
}

/**
 * A call that was made and has no end. An approved one of the current turn is none: the SDK is about to make it, and the
 * page is to hear of its result from there.
 */
function isOpen(part: unknown, earlier: boolean): part is ToolPart {
  const { type, state, approval, providerExecuted } = part as ToolPart;
  if (providerExecuted || (type !== "dynamic-tool" && !type.startsWith("tool-"))) return false;
  return state === "input-available" || (earlier && state === "approval-responded" && approval?.approved === true);
}

async function mendedPart(
  chat: Chat,
  run: Pick<Run, "recorded">,
  part: ToolPart,
  turn: string | undefined,
): Promise<ToolPart> {
  const found = await find(chat, run, part, turn);
  switch (found.state) {
    case "none":
      return part;
    case "completed":
      return { ...part, state: "output-available", output: found.result } as ToolPart;
    case "unavailable":
    case "running":
    case "in-doubt":
    case "failed":
    case "released":
    case "key-reused":
      return { ...part, state: "output-error", errorText: errorText(found.error) } as ToolPart;
  }
}

async function find(
  chat: Chat,
  run: Pick<Run, "recorded">,
  part: ToolPart,
  turn: string | undefined,
): Promise<Recorded> {
  const name = part.type === "dynamic-tool" ? String(part.toolName) : part.type.slice("tool-".length);
  const known = chat.guards.get(name);
  if (known === undefined) chat.guessed.add(name);
  const guesses: Pick<Guard, "name" | "rules" | "effect">[] = known
    ? [known]
    : [
        { name, rules: {} },
        { name, rules: { identity: "call" } },
      ];
  for (const guess of guesses) {
    if (turn === undefined && guess.rules.key === undefined) continue;
    const effect = guess.effect ?? effectOf(guess, () => undefined);
    const found = await run.recorded(effect, part.input, { turn, callId: part.toolCallId });
    if (found.state !== "none") return found;
  }
  return { state: "none" };
}
