import { TwiceproofError } from "@twiceproof/core";
import { checkOptions } from "@twiceproof/core/adapter";
import { type Chat, throwIfInDoubt } from "./chat.ts";
import { kindIn } from "./guard.ts";
import { runOver, turnMissing } from "./problems.ts";
import type { PrepareStep, StopCondition } from "./sdk.ts";

export interface LoopOptions<Stop, Prepare> {
  /** As for `streamText`, `generateText` or an agent. Required, because with conditions of ours the SDK's own default is off. */
  readonly stopWhen: Stop | readonly Stop[];
  readonly prepareStep?: Prepare | undefined;
}

export interface Loop<Stop, Prepare> {
  readonly stopWhen: (Stop | (() => boolean))[];
  readonly prepareStep: Prepare;
  readonly abortSignal: AbortSignal;
}

/**
 * `stopWhen` ends the loop after a step with a doubt. Approved calls run before the first step, past `stopWhen`, so
 * `prepareStep` throws the doubt before the model is called; and there a run that was stopped or is over ends what is left
 * of its loops, whatever signal those were given.
 */
export function loopOf<Stop extends StopCondition, Prepare extends PrepareStep>(
  chat: Chat,
  options: LoopOptions<Stop, Prepare>,
): Loop<Stop, Prepare> {
  const { stopWhen, prepareStep } = checkedLoop(options);
  const checked = (step: Parameters<PrepareStep>[0]): unknown => {
    throwIfInDoubt(chat);
    // The first releases of 5 heed no abort while a tool works.
    chat.signal.throwIfAborted();
    if (chat.over) throw runOver();
    refuseWithoutTurn(chat);
    return prepareStep?.(step);
  };
  return {
    stopWhen: [() => chat.doubts.length > 0, ...(Array.isArray(stopWhen) ? stopWhen : [stopWhen as Stop])],
    prepareStep: checked as Prepare,
    abortSignal: chat.signal,
  };
}

const loopNames: Record<keyof LoopOptions<never, never>, true> = { stopWhen: true, prepareStep: true };

function checkedLoop<Stop, Prepare>(options: LoopOptions<Stop, Prepare>): LoopOptions<Stop, Prepare> {
  const given: Partial<LoopOptions<Stop, Prepare>> = options ?? {};
  checkOptions("run.loop", given, loopNames);
  const { stopWhen, prepareStep } = given;
  if (![stopWhen].flat().every((condition) => typeof condition === "function"))
    throw new TwiceproofError(
      "INVALID_ARGUMENT",
      "`run.loop` needs a `stopWhen`: a condition, such as `stepCountIs(20)`, or a list of them.",
    );
  if (prepareStep !== undefined && typeof prepareStep !== "function")
    throw new TwiceproofError("INVALID_ARGUMENT", "`run.loop` takes a function as its `prepareStep`.");
  return options;
}

/** A call would throw it too; but there the model would hear of it, and nobody else. */
function refuseWithoutTurn({ turn, guards }: Chat): void {
  if (turn !== undefined) return;
  for (const [name, { rules }] of guards)
    if (rules.key === undefined && kindIn(rules) !== "read") throw turnMissing(name);
}
