import type { AnyEffect, CallOptions, Effect, Once, RecordedOf, Run } from "@twiceproof/core";
import { attach, type Chat, type ToolDoubt, throwIfInDoubt } from "./chat.ts";
import { errorText, hidden } from "./errors.ts";
import { guardTools } from "./guard-tools.ts";
import { type Loop, type LoopOptions, loopOf } from "./loop.ts";
import { turnMissing } from "./problems.ts";
import { repair } from "./repair.ts";
import type { Kinds, RulesOf } from "./rules.ts";
import type { ChatMessage, PrepareStep, StopCondition } from "./sdk.ts";

/** A run of core, for a chat: what a route handler spreads into the SDK's functions. */
export interface ChatRun extends Omit<Run, "turn"> {
  /** Undefined until `repair` was told the messages, unless `withRun` was given one. */
  readonly turn: string | undefined;
  /** `guardTools` in this run. @throws TwiceproofError `TOOL_UNCLASSIFIED`, `INVALID_ARGUMENT`, naming the tool */
  tools<Tools extends Record<string, object>>(tools: Tools, kinds: Kinds<Tools>, rules?: RulesOf<Tools>): Tools;
  /**
   * Mends a saved chat from the record, for `convertToModelMessages`: a call that lost its end gets its result, or the
   * fixed text of what is known. A call that is not on record of this thread stays as it is. One of this turn whose outcome
   * is not known counts as a doubt of this run. It also tells the run its turn, the last user message. Call it after `tools`
   * when one of them has a `key`.
   */
  repair<M extends ChatMessage>(messages: readonly M[]): Promise<M[]>;
  /**
   * `stopWhen`, `prepareStep` and `abortSignal`: the loop ends with a call whose outcome is not known, and the model is not
   * asked again.
   */
  loop<Stop extends StopCondition, Prepare extends PrepareStep = PrepareStep<undefined>>(
    options: LoopOptions<Stop, Prepare>,
  ): Loop<Stop, Prepare>;
  /** `onError` for the UI stream: the page gets `EFFECT_IN_DOUBT: …`, and of errors that are not ours what the SDK says by itself. */
  readonly stream: { readonly onError: (error: unknown) => string };
  /** The calls of this run, and of its turn as far as `repair` met them, whose outcome is not known. */
  doubts(): readonly ToolDoubt[];
  /** For `generateText`, whose loop ends with a doubt as if nothing was wrong. @throws TwiceproofError of the first doubt */
  throwIfInDoubt(): void;
}

export function createChatRun(run: Run, chat: Chat): ChatRun {
  // The turn is known later than the run, whose own stands in for it in core: every retry would be another turn.
  function placed({ name, kind, key }: AnyEffect, options: CallOptions): CallOptions {
    const turn = options.turn ?? chat.turn;
    if (turn === undefined && kind !== "read" && key === undefined && options.key === undefined)
      throw turnMissing(name);
    return { ...options, turn };
  }
  const once = (async (what: string | Effect, second: unknown, options: CallOptions = {}) =>
    typeof what === "string"
      ? await run.once(what, second as () => unknown, { turn: chat.turn, ...options })
      : await run.once(what, second, placed(what, options))) as Once;
  const recorded: RecordedOf = async (effect, input, options = {}) =>
    await run.recorded(effect, input, placed(effect, options));

  const chatRun: ChatRun = {
    thread: run.thread,
    runId: run.runId,
    get turn() {
      return chat.turn;
    },
    signal: run.signal,
    token: run.token,
    fence: run.fence,
    once,
    recorded,
    tools: (tools, kinds, rules) => guardTools(tools, { kinds, rules, run: chatRun }),
    repair: (messages) => repair(chat, chatRun, messages),
    loop: (options) => loopOf(chat, options),
    stream: { onError: (error) => errorText(error) ?? hidden },
    doubts: () => chat.doubts.map(({ tool, toolCallId, error }) => ({ tool, toolCallId, error })),
    throwIfInDoubt: () => throwIfInDoubt(chat),
  };
  return attach(chatRun, chat);
}
