import { type Effect, findTwiceproofError } from "@twiceproof/core";
import { canonical } from "@twiceproof/core/adapter";
import { chatOf, doubtOf, noteDoubt } from "./chat.ts";
import type { Guard } from "./guard.ts";
import { onceIn, recordedIn } from "./place.ts";
import type { ToolCallOptions } from "./sdk.ts";

/**
 * One call of a guarded tool. The caller's signal ends the waiting for another call's result; what has begun is
 * recorded all the same, and the chat's run is held until then.
 */
export async function call(guard: Guard, effect: Effect, input: unknown, options: ToolCallOptions): Promise<unknown> {
  const { name, place } = guard;
  const { toolCallId } = options;
  const chat = chatOf(place);
  // Taken before the body can change it.
  const print = chat && effect.identity === "call" ? canonical(input) : undefined;
  const standing = chat && print !== undefined ? doubtOf(chat, name, print) : undefined;
  if (standing) throw standing;
  const outcome = made(guard, effect, input, options);
  chat?.pending.add(outcome);
  try {
    return await outcome;
  } catch (thrown) {
    const error = findTwiceproofError(thrown, "EFFECT_IN_DOUBT", "EFFECT_RUNNING");
    if (chat && error) noteDoubt(chat, { tool: name, toolCallId, error, print });
    throw thrown;
  } finally {
    chat?.pending.delete(outcome);
  }
}

async function made(guard: Guard, effect: Effect, input: unknown, options: ToolCallOptions): Promise<unknown> {
  const { place } = guard;
  const { toolCallId: callId, abortSignal: signal } = options;
  try {
    return await onceIn(place, effect, input, { callId, signal });
  } catch (thrown) {
    const calledOff = signal?.aborted === true && thrown === signal.reason;
    if (!calledOff || chatOf(place)?.signal.aborted) throw thrown;
    return await leftRunning(guard, effect, input, callId, thrown);
  }
}

/**
 * A tool's own time is over, and the run goes on: that the call was called off is no news for a model while another one of
 * it runs, since it would try again in other words.
 */
async function leftRunning(
  { place }: Guard,
  effect: Effect,
  input: unknown,
  callId: string | undefined,
  thrown: unknown,
): Promise<unknown> {
  // Without an answer nothing is known of another call: then the abort is all there is to tell.
  const found = await recordedIn(place, effect, input, { callId }).catch(() => ({ state: "none" }) as const);
  switch (found.state) {
    case "completed":
      return found.result;
    case "running":
      throw found.error;
    case "in-doubt":
      // An idempotent one may be run again; its own doubt is what it threw.
      throw effect.kind === "idempotent" ? thrown : found.error;
    case "none":
    case "unavailable":
    case "failed":
    case "released":
    case "key-reused":
      throw thrown;
  }
}
