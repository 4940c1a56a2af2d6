import { ToolMessage } from "@langchain/core/messages";
import { GraphInterrupt, isGraphBubbleUp } from "@langchain/langgraph";
import {
  type Effect,
  type EffectContext,
  isTwiceproofError,
  notExecuted,
  type Recorded,
  type TwiceproofError,
} from "@twiceproof/core";
import { canonical } from "@twiceproof/core/adapter";
import { type ToolConfig, toolCallIdOf } from "./config.ts";
import { leave, settleBy, takeVerdicts } from "./doubt.ts";
import { placeOf } from "./place.ts";
import { attached, detached } from "./result.ts";
import type { Guard } from "./rules.ts";
import { claimantOf } from "./run-mark.ts";
import { note } from "./watch.ts";

/** `input` as the rules' own schema gives it, where they have one. */
export type Body = (input: unknown, context: EffectContext) => unknown;

/**
 * One call of a guarded tool. `body` runs at most once for each claim that is won; what it gives is recorded without what
 * belongs to this call alone.
 *
 * @throws GraphInterrupt when the effect is in doubt, in a graph with a checkpointer; what the body left by, with
 * `mayInterrupt`; TwiceproofError what `once` throws, save `EFFECT_RUNNING` and `EFFECT_RESULT_UNAVAILABLE`
 */
export async function callOnce(guard: Guard, input: unknown, config: ToolConfig, body: Body): Promise<unknown> {
  const { tp, name, rules } = guard;
  const callId = toolCallIdOf(config);
  const call = `${config.configurable?.checkpoint_ns} ${callId ?? `${name} ${canonical(input)}`}`;
  note(call);
  const verdicts = takeVerdicts(config);
  const { scope, turn } = await placeOf(name, config, rules.key !== undefined || rules.kind === "read");
  const exit: { error?: unknown } = {};
  let signal: AbortSignal | undefined;
  const effect: Effect<unknown, unknown, unknown> = {
    ...rules,
    name,
    // What a tool throws when it is called off may be about the calling off alone.
    classify: (error) => (signal?.aborted || isCalledOff(error) ? undefined : rules.classify?.(error)),
    run: async (parsed, context) => {
      signal = context.signal;
      try {
        return detached(await body(parsed, context), callId);
      } catch (error) {
        if (!isGraphBubbleUp(error as GraphInterrupt)) throw error;
        if (!guard.mayInterrupt) throw askedInside(name, error);
        exit.error = error;
        throw notExecuted("it stopped to ask before anything happened");
      }
    },
  };
  const by = claimantOf(config, tp, config.configurable?.thread_id);
  if (config.configurable?.__twiceproof_record_only)
    return fromRecord(await by.recorded(effect, input, { scope, turn, callId }), scope, name, callId);
  const options = { scope, turn, callId, signal: config.signal };
  for (;;) {
    try {
      return attached(await by.once(effect, input, options), callId);
    } catch (error) {
      if (!isTwiceproofError(error)) throw calledOff(config) ?? error;
      switch (error.code) {
        case "EFFECT_RUNNING":
          // A call that runs elsewhere is waited for: what else there is to do about it a model must not decide.
          if (rules.waitMs === undefined) continue;
          return told(error, name, callId);
        case "EFFECT_RESULT_UNAVAILABLE":
          return error.message;
        case "RUN_LOST":
          throw calledOff(config, true) ?? error;
        case "EFFECT_NOT_EXECUTED":
          throw exit.error ?? error;
        case "EFFECT_IN_DOUBT": {
          const verdict = verdicts.get(error.id ?? "");
          if (verdict !== undefined && (await settleBy(tp, error.id ?? "", verdict, scope))) continue;
          return leaveInDoubt(error, name, config, (exit) => note(call, { callId, error, exit }));
        }
      }
      throw error;
    }
  }
}

function leaveInDoubt(
  error: TwiceproofError,
  name: string,
  config: ToolConfig,
  noted: (exit: unknown) => void,
): ToolMessage {
  if (!config.configurable?.__pregel_checkpointer) return told(error, name, toolCallIdOf(config));
  try {
    return leave(error, name, config);
  } catch (exit) {
    noted(exit);
    throw exit;
  }
}

/**
 * Its message and nothing else, where no interrupt can be: a tool node puts "Please fix your mistakes" behind the message
 * of what a tool throws. Outside of a tool call nobody adds to it, and it is thrown.
 */
function told(error: { readonly message: string }, name: string, callId: string | undefined): ToolMessage {
  if (callId === undefined) throw error;
  return new ToolMessage({ status: "error", content: error.message, name, tool_call_id: callId });
}

/**
 * The run was called off while this call waited, or lost its thread. As a plain error a tool node would write it into the
 * state as the tool's answer; as an empty interrupt the task stays to be done.
 */
function calledOff(config: ToolConfig, isLost = false): GraphInterrupt | undefined {
  if (!isLost && !config.signal?.aborted) return undefined;
  return config.configurable?.__pregel_checkpointer ? new GraphInterrupt([]) : undefined;
}

/** An answer for a call of an earlier run, which nobody makes any more. By a key, another thread's call may be found: that is not told. */
function fromRecord(found: Recorded, scope: string | undefined, name: string, callId: string | undefined): unknown {
  if (found.state !== "none" && found.scope !== scope) return told({ message: noResult(name) }, name, callId);
  switch (found.state) {
    case "none":
      return told({ message: `"${name}" was not executed: the run that called it was over first.` }, name, callId);
    case "completed":
      return attached(found.result, callId);
    case "unavailable":
    case "running":
    case "in-doubt":
    case "failed":
    case "released":
    case "key-reused":
      return told(found.error, name, callId);
  }
}

/** What is told of an earlier run's call of which nothing is known. */
export function noResult(name: string): string {
  return `"${name}" has no result: the run that called it was over before it answered. It may have happened.`;
}

function isCalledOff(error: unknown): boolean {
  return ["AbortError", "NodeTimeoutError", "TimeoutError"].includes(String((error as Partial<Error> | null)?.name));
}

function askedInside(name: string, cause: unknown): Error {
  return new Error(
    `"${name}" left by an interrupt in the midst of an effect. Ask before the effect, or say mayInterrupt: true.`,
    { cause },
  );
}
