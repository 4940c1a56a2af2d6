import { AsyncLocalStorage } from "node:async_hooks";
import { type CallbackManager, ensureHandler } from "@langchain/core/callbacks/manager";
import type { BaseMessage } from "@langchain/core/messages";
import type { RunnableConfig } from "@langchain/core/runnables";
import { TwiceproofError } from "@twiceproof/core";

/** A doubt as it left its tool. `exit` is the interrupt. */
interface Left {
  readonly callId: string | undefined;
  readonly error: TwiceproofError;
  readonly exit: unknown;
}

/** The doubts that left tools within a run, or within one tool call, by the call: others may swallow them on their way. */
interface Watch {
  readonly doubts: Map<string, Left>;
  readonly outer: Watch | undefined;
}

const current = new AsyncLocalStorage<Watch>();

/** `left` undefined: the call is made anew. */
export function note(call: string, left?: Left): void {
  for (let watch = current.getStore(); watch !== undefined; watch = watch.outer)
    if (left === undefined) watch.doubts.delete(call);
    else watch.doubts.set(call, left);
}

function makeWatch(): Watch {
  return { doubts: new Map(), outer: current.getStore() };
}

/** Runs a tool call, and leaves by its doubt whatever was made of it in between. */
export async function leavingByDoubt<Answer>(run: () => Answer | Promise<Answer>): Promise<Answer> {
  const watch = makeWatch();
  const left = (): Left | undefined => [...watch.doubts.values()][0];
  try {
    const answer = await current.run(watch, async () => await run());
    if (left() === undefined) return answer;
  } catch (error) {
    if (left() === undefined) throw error;
  }
  throw left()?.exit;
}

export interface WatchedRun {
  readonly config: RunnableConfig;
  /** Starts the run: what it does from here on is watched. */
  readonly within: <T>(start: () => T) => T;
  /** @throws TwiceproofError `EFFECT_IN_DOUBT` when a call of the run is in doubt. Of several the others are in its `cause`. */
  readonly refuseDoubts: () => void;
}

/**
 * A run whose doubts are known, and in which no model is called with an answer that others gave for a tool in doubt, such
 * as a middleware that retries: the call of the model rejects with the doubt instead.
 */
export function watchRun(config: RunnableConfig): WatchedRun {
  const watch = makeWatch();
  const guard = ensureHandler({
    awaitHandlers: true,
    raiseError: true,
    handleChatModelStart(_model: unknown, given: readonly BaseMessage[][]) {
      const answered = new Set(given.flat().map((message) => (message as { tool_call_id?: string }).tool_call_id));
      for (const { callId, error } of watch.doubts.values())
        if (callId !== undefined && answered.has(callId)) throw error;
    },
  } as Parameters<typeof ensureHandler>[0]);
  return {
    config: { ...config, callbacks: withHandler(config.callbacks, guard) },
    within: (start) => current.run(watch, start),
    refuseDoubts() {
      const [first, ...others] = [...watch.doubts.values()].map(({ error }) => error);
      if (first === undefined) return;
      if (others.length === 0) throw first;
      const { message, id = "", ref = "", help } = first;
      const cause = new AggregateError([first, ...others], "Several effects of this run are in doubt.");
      throw new TwiceproofError("EFFECT_IN_DOUBT", message, { id, ref, help, cause });
    },
  };
}

function withHandler(
  callbacks: RunnableConfig["callbacks"],
  handler: ReturnType<typeof ensureHandler>,
): NonNullable<RunnableConfig["callbacks"]> {
  if (callbacks === undefined || Array.isArray(callbacks)) return [...(callbacks ?? []), handler];
  const copy = (callbacks as CallbackManager).copy();
  copy.addHandler(handler, true);
  return copy;
}
