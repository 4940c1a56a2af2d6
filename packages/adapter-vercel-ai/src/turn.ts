import { TwiceproofError } from "@twiceproof/core";
import { canonical, digest } from "@twiceproof/core/adapter";
import type { ChatMessage } from "./sdk.ts";

/**
 * What the last user message asked for: the same for a retry, a regenerate and an approval; another one for a new message
 * and for an edited one, which keeps its id.
 *
 * @throws TwiceproofError `IDENTITY_MISSING` when no user message with an id is among them
 */
export function turnOf(messages: readonly ChatMessage[]): string {
  const asked = messages.findLast(({ role }) => role === "user");
  if (typeof asked?.id !== "string" || asked.id === "")
    throw new TwiceproofError(
      "IDENTITY_MISSING",
      "Nothing says what turn this is: there is no user message with an id among the messages.",
    );
  // As JSON would carry it: a message that was stored, or posted, is the one that was written.
  const parts = canonical(JSON.parse(JSON.stringify(asked.parts ?? null)));
  return `message:${digest(asked.id, parts)}`;
}
