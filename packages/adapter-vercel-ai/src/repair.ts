import { findTwiceproofError, type Recorded, type Run } from "@twiceproof/core";
import { canonical } from "@twiceproof/core/adapter";
import { type Chat, noteDoubt } from "./chat.ts";
import { errorText } from "./errors.ts";
import { effectOf, type Guard } from "./guard.ts";
import { type OpenCall, openCalls } from "./open-calls.ts";
import type { ChatMessage, ToolPart } from "./sdk.ts";
import { checkMessages, turnOf } from "./turn.ts";

/** A page may post any number of open calls. The last ones are what a chat goes on with. */
const maxLookUps = 1_000;

/** Looks in the record for calls whose end a saved chat does not tell. The messages that were given are not changed. */
export async function repair<M extends ChatMessage>(
  chat: Chat,
  run: Pick<Run, "recorded" | "thread">,
  messages: readonly M[],
): Promise<M[]> {
  checkMessages("run.repair", messages);
  const asked = messages.findLastIndex((message) => message?.role === "user");
  const { ownTurn } = chat;
  if (ownTurn === undefined && asked >= 0) chat.turn = turnOf(messages);

  const calls = openCalls(messages, asked, ownTurn).slice(-maxLookUps);
  const mended = new Map<number, Map<number, ToolPart>>();
  await Promise.all(
    calls.map(async (call) => {
      const part = await mendedPart(chat, run, call);
      if (part === undefined) return;
      const { message, at } = call;
      mended.set(message, (mended.get(message) ?? new Map()).set(at, part));
    }),
  );
  return messages.map((message, index) => {
    const parts = mended.get(index);
    return parts ? { ...message, parts: message.parts.map((part, at) => parts.get(at) ?? part) } : message;
  });
}

/** Undefined: it stays as it is. */
async function mendedPart(
  chat: Chat,
  run: Pick<Run, "recorded" | "thread">,
  call: OpenCall,
): Promise<ToolPart | undefined> {
  const { guess, found } = await find(chat, run, call);
  const { errorText: _error, ...part } = call.part;
  const { approval } = part;
  const isDenied = approval?.approved === false;
  // A denial came too late for what was made; the SDK's types allow for no result of a denied call.
  const approved = isDenied ? { approval: { ...approval, approved: true } } : {};
  switch (found.state) {
    case "none":
      return undefined;
    case "completed":
      return { ...part, ...approved, state: "output-available", output: found.result };
    case "running":
    case "in-doubt":
      if (call.current && guess.rules.kind !== "idempotent") {
        const print = guess.rules.identity === "call" ? canonical(part.input) : undefined;
        noteDoubt(chat, { tool: call.tool, toolCallId: part.toolCallId, error: found.error, print });
      }
      return { ...part, ...approved, state: "output-error", errorText: errorText(found.error) };
    case "unavailable":
      return { ...part, ...approved, state: "output-error", errorText: errorText(found.error) };
    case "failed":
    case "released":
    case "key-reused":
      if (isDenied) return undefined;
      return { ...part, state: "output-error", errorText: errorText(found.error) };
  }
}

type Guess = Pick<Guard, "name" | "rules" | "effect">;

async function find(
  chat: Chat,
  run: Pick<Run, "recorded" | "thread">,
  call: OpenCall,
): Promise<{ readonly guess: Guess; readonly found: Recorded }> {
  const { tool: name, part, turn } = call;
  const known = chat.guards.get(name);
  if (known === undefined) chat.guessed.add(name);
  const guesses: Guess[] = known
    ? [known]
    : [
        { name, rules: {} },
        { name, rules: { identity: "call" } },
      ];
  for (const guess of guesses) {
    if (turn === undefined && guess.rules.key === undefined) continue;
    const effect = guess.effect ?? effectOf(guess, () => undefined);
    const found = await run.recorded(effect, part.input, { turn, callId: part.toolCallId }).catch(unidentified);
    // A key is global, and the part comes from the page: of another chat's calls it must tell nothing.
    if (found.state !== "none" && found.scope === run.thread) return { guess, found };
  }
  return { guess: { name, rules: {} }, found: { state: "none" } };
}

/** An input that fits no schema or key any more, or never did, is of no call that could be found. */
function unidentified(error: unknown): Recorded {
  if (findTwiceproofError(error)?.code.startsWith("STORE_")) throw error;
  return { state: "none" };
}
