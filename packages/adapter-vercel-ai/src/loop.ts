import { type Chat, throwIfInDoubt } from "./chat.ts";
import { kindIn } from "./guard.ts";
import { turnMissing } from "./problems.ts";
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
 * `prepareStep` throws the doubt before the model is called.
 */
export function loopOf<Stop extends StopCondition, Prepare extends PrepareStep>(
  chat: Chat,
  signal: AbortSignal,
  { stopWhen, prepareStep }: LoopOptions<Stop, Prepare>,
): Loop<Stop, Prepare> {
  const checked = (step: Parameters<PrepareStep>[0]): unknown => {
    throwIfInDoubt(chat);
    // The first releases of 5 heed no abort while a tool works.
    signal.throwIfAborted();
    refuseWithoutTurn(chat);
    return prepareStep?.(step);
  };
  return {
    stopWhen: [() => chat.doubts.length > 0, ...(Array.isArray(stopWhen) ? stopWhen : [stopWhen as Stop])],
    prepareStep: checked as Prepare,
    abortSignal: signal,
  };
}

/** A call would throw it too; but there the model would hear of it, and nobody else. */
function refuseWithoutTurn({ turn, guards }: Chat): void {
  if (turn !== undefined) return;
  for (const [name, { rules }] of guards)
    if (rules.key === undefined && kindIn(rules) !== "read") throw turnMissing(name);
}
