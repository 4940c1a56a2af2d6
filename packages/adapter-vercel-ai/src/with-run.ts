import { errorResponse, type RunOptions, type Twiceproof } from "@twiceproof/core";
import { isInsideEffect } from "@twiceproof/core/adapter";
import type { ChatRun } from "./chat-run.ts";
import { type Drained, drained } from "./drained.ts";
import { runFinished } from "./problems.ts";
import { checkHandler, inChat } from "./with-chat.ts";

export interface ChatRunOptions extends RunOptions {
  /**
   * Told of the promise that resolves when the run is over, long after the response was returned: `after` of Next, or
   * `waitUntil` of a platform that would stop the function. It does not reject.
   */
  readonly waitUntil?: ((over: Promise<void>) => unknown) | undefined;
  /**
   * True, with a `runId`: a run whose response came to its end is not run a second time. As a response cannot be kept, who
   * asks again gets a 409, `RUN_FINISHED`. Default false: it is run again, and its calls give what was recorded.
   */
  readonly remember?: boolean | undefined;
}

/**
 * One run per chat at a time, round a route handler. Who finds the chat busy waits, or gets a 409 and has called no model. The
 * run is over when the response has streamed to its end, everything that waits for that end has saved, and no call is under
 * way, whether or not anybody still reads: a page that is closed stops nothing. A page that reads is told the end when the
 * run is over, with the code when it was stopped or lost its chat.
 *
 * Errors of ours that the handler throws become their `errorResponse`; others reject, and so do slips of the application
 * (`INVALID_ARGUMENT`, `IDENTITY_MISSING`, `TOOL_UNCLASSIFIED`), which are for its log, and the reason of an aborted `signal`.
 * Inside of an effect's body all of them reject, and a doubt breaks the response off: an answer would be taken for a success.
 */
export function withRun(
  tp: Twiceproof,
  options: ChatRunOptions,
  handler: (run: ChatRun) => Response | Promise<Response>,
): Promise<Response> {
  return new Promise<Response>((resolve, reject) => {
    const strict = isInsideEffect();
    const over = run();
    options?.waitUntil?.(over);

    async function run(): Promise<void> {
      const { waitUntil: _waitUntil, remember = false, ...runOptions } = options ?? {};
      let answer: Drained | undefined;
      try {
        checkHandler("withRun(tp, options, handler)", handler);
        await inChat(tp, { ...runOptions, remember }, strict, async (chatRun) => {
          answer = drained(await handler(chatRun), strict);
          if (answer.response.body === null) return;
          resolve(answer.response);
          await answer.read;
          // The SDK ends the stream of a run that was stopped as if it was complete.
          chatRun.signal.throwIfAborted();
        });
        if (answer === undefined) throw runFinished();
        answer.end();
        resolve(answer.response);
      } catch (error) {
        answer?.end(error);
        const refusal = strict ? undefined : errorResponse(error);
        if (refusal !== undefined && refusal.status !== 500) resolve(refusal);
        else reject(error);
      }
    }
  });
}
