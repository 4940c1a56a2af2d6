import { TwiceproofError } from "@twiceproof/core";
import { canonical, digest } from "@twiceproof/core/adapter";
import type { ChatMessage } from "./sdk.ts";

/**
 * What the last user message asked for: the same for a retry, a regenerate and an approval; another one for a new message
 * and for an edited one, which keeps its id.
 *
 * @throws TwiceproofError `IDENTITY_MISSING` when no user message with an id is among them; `INVALID_ARGUMENT`
 */
export function turnOf(messages: readonly ChatMessage[]): string {
  checkMessages("turnOf", messages);
  const turn = turnAt(messages.findLast((message) => message?.role === "user"));
  if (turn !== undefined) return turn;
  throw new TwiceproofError(
    "IDENTITY_MISSING",
    "Nothing says what turn this is: there is no user message with an id among the messages.",
  );
}

export function checkMessages(what: string, messages: unknown): void {
  if (!Array.isArray(messages))
    throw new TwiceproofError(
      "INVALID_ARGUMENT",
      `\`${what}\` takes the messages of the chat, an array. (Where a promise gives them: \`await\` it.)`,
    );
}

/** Undefined for a message without an id. */
export function turnAt(message: ChatMessage | undefined): string | undefined {
  const { id, parts } = message ?? {};
  if (typeof id !== "string" || id === "") return undefined;
  const said = Array.isArray(parts) ? parts.flatMap(saidBy) : [];
  return `message:${digest(id, canonical(said))}`;
}

/**
 * What a person wrote or attached. All else differs between the tab that wrote the message and one that loaded it: a text
 * is `done` there, a file has been stored under another address, which may be signed anew for each request.
 */
function saidBy(part: unknown): string[][] {
  const { type, text, mediaType, filename } = (part ?? {}) as Record<string, unknown>;
  if (type === "text" && typeof text === "string") return [["text", text]];
  return type === "file" ? [["file", textOf(mediaType), textOf(filename)]] : [];
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}
