import { type Effect, findTwiceproofError } from "@twiceproof/core";
import { canonical } from "@twiceproof/core/adapter";
import { chatOf, doubtOf } from "./chat.ts";
import type { Guard } from "./guard.ts";
import { onceIn } from "./place.ts";
import type { ToolCallOptions } from "./sdk.ts";

/**
 * One call of a guarded tool. The caller's signal ends the waiting for another call's result; what has begun is
 * recorded all the same, and the chat's run is held until then.
 */
export async function call(guard: Guard, effect: Effect, input: unknown, options: ToolCallOptions): Promise<unknown> {
  const { name, place } = guard;
  const { toolCallId, abortSignal } = options;
  const chat = chatOf(place);
  // Taken before the body can change it.
  const print = chat && effect.identity === "call" ? canonical(input) : undefined;
  const standing = chat && print !== undefined ? doubtOf(chat, name, print) : undefined;
  if (standing) throw standing;
  const outcome = onceIn(place, effect, input, { callId: toolCallId, signal: abortSignal });
  chat?.pending.add(outcome);
  try {
    return await outcome;
  } catch (thrown) {
    const error = findTwiceproofError(thrown, "EFFECT_IN_DOUBT", "EFFECT_RUNNING");
    if (error) chat?.doubts.push({ tool: name, toolCallId, error, print });
    throw thrown;
  } finally {
    chat?.pending.delete(outcome);
  }
}
