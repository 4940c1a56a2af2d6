import type { ChatMessage, ToolPart } from "./sdk.ts";
import { turnAt } from "./turn.ts";

/** A call that was made, as far as the saved chat knows, and whose end it does not tell. */
export interface OpenCall {
  readonly part: ToolPart;
  readonly tool: string;
  /** Where the part stands: the message's index, and the part's in it. */
  readonly message: number;
  readonly at: number;
  /** Undefined where a turn of the user's own is not known: of earlier messages. */
  readonly turn: string | undefined;
  /** Of the turn that the chat goes on with. */
  readonly current: boolean;
}

/** In the order of the chat. `asked`: the index of the last user message. */
export function openCalls(
  messages: readonly ChatMessage[],
  asked: number,
  ownTurn: string | undefined,
): readonly OpenCall[] {
  const calls: OpenCall[] = [];
  let turn: string | undefined;
  for (const [message, given] of messages.entries()) {
    const { role, parts } = (given ?? {}) as Partial<ChatMessage>;
    const current = message > asked;
    if (role === "user") turn = turnAt(given);
    if (role !== "assistant" || !Array.isArray(parts)) continue;
    for (const [at, part] of parts.entries()) {
      const tool = toolOf(part);
      if (tool === undefined || !isOpen(part as ToolPart, current)) continue;
      const ofTurn = ownTurn === undefined ? turn : current ? ownTurn : undefined;
      calls.push({ part: part as ToolPart, tool, message, at, turn: ofTurn, current });
    }
  }
  return calls;
}

/** Undefined for what is no call, or none that a tool here has made. */
function toolOf(part: unknown): string | undefined {
  const { type, toolName, providerExecuted } = (part ?? {}) as Partial<Record<keyof ToolPart, unknown>>;
  if (typeof type !== "string" || providerExecuted) return undefined;
  if (type === "dynamic-tool") return typeof toolName === "string" ? toolName : undefined;
  return type.startsWith("tool-") ? type.slice("tool-".length) : undefined;
}

/**
 * An approved call of the current turn is not: the SDK is about to make it, and the page is to hear of its result from
 * there. A denied one may have been approved, and made, in another tab.
 */
function isOpen({ state, approval, errorText }: ToolPart, current: boolean): boolean {
  if (state === "approval-responded") return approval?.approved === false || (!current && approval?.approved === true);
  if (state === "output-error") return /^EFFECT_(?:RUNNING|IN_DOUBT):/.test(errorText ?? "");
  return state === "input-available" || state === "output-denied";
}
