import { errorResponse, type RunOptions, type Twiceproof, TwiceproofError } from "@twiceproof/core";
import { newChat, quiet } from "./chat.ts";
import { type ChatRun, createChatRun } from "./chat-run.ts";
import { drained } from "./drained.ts";

export interface ChatRunOptions extends RunOptions {
  /**
   * Told of the promise that resolves when the run is over, long after the response was returned: `after` of Next, or
   * `waitUntil` of a platform that would stop the function. It does not reject.
   */
  readonly waitUntil?: ((over: Promise<void>) => unknown) | undefined;
}

/**
 * One run per chat at a time, round a route handler. Who finds the chat busy gets a 409 and has called no model. The run
 * is over when the response has streamed to its end, everything that waits for that end has saved, and no call is under
 * way, whether or not anybody still reads: a page that is closed stops nothing.
 *
 * Errors of ours that the handler throws become their `errorResponse`; others reject, and so do slips of the application
 * (`INVALID_ARGUMENT`, `IDENTITY_MISSING`, `TOOL_UNCLASSIFIED`), which are for its log.
 */
export function withRun(
  tp: Twiceproof,
  options: ChatRunOptions,
  handler: (run: ChatRun) => Response | Promise<Response>,
): Promise<Response> {
  return new Promise<Response>((resolve, reject) => {
    const fail = (error: unknown): void => {
      const answer = errorResponse(error);
      if (answer !== undefined && answer.status !== 500) resolve(answer);
      else reject(error);
    };
    // What fails after the response was handed over is told by `onEvent`; to the page, the stream ends with the run's signal.
    const over = run().catch(fail);
    options?.waitUntil?.(over);

    async function run(): Promise<void> {
      const { waitUntil: _waitUntil, ...runOptions } = options ?? {};
      if (typeof handler !== "function")
        throw new TwiceproofError(
          "INVALID_ARGUMENT",
          "`withRun(tp, options, handler)` needs a function as its third argument.",
        );
      await tp.withRun(runOptions, async (coreRun) => {
        const chat = newChat(options.turn);
        try {
          const { response, end } = drained(await handler(createChatRun(coreRun, chat)));
          resolve(response);
          await end;
        } catch (error) {
          fail(error);
        }
        await quiet(chat);
      });
    }
  });
}
