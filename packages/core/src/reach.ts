import { jittered, pause, stopwatch } from "./clock.ts";
import { isStoreSetupError, TwiceproofError } from "./errors.ts";
import type { Caller } from "./lane.ts";

interface ReachOptions<T> {
  readonly withinMs: number;
  /** Does not keep the process alive. */
  readonly background?: boolean;
  /** An answer that came after the question was given up; it must be taken care of, not lost. */
  readonly onLate?: (answer: T) => void;
}

/**
 * Asks the store until it answers, or `withinMs` are over. The question must be repeatable: it carries an attempt or a
 * decision id, so that an answer that was lost on the way can be asked for again (promise 13). A question without an
 * answer is asked again, on another connection perhaps, after a third of the time; the first answer to any of them counts.
 *
 * @throws TwiceproofError `STORE_UNAVAILABLE`, or the store's own error about its set-up, which no repetition mends.
 */
export async function reach<T>(ask: (caller: Caller) => Promise<T>, options: ReachOptions<T>): Promise<T> {
  const { withinMs, background = false, onLate } = options;
  const elapsed = stopwatch();
  const answers: T[] = [];
  let over = false;
  let lastError: unknown;
  for (let round = 0; round === 0 || elapsed() < withinMs; round++) {
    const caller: Caller = { gaveUp: false };
    const asked = ask(caller).then(
      (answer) => {
        if (over) onLate?.(answer);
        else answers.push(answer);
      },
      (error: unknown) => {
        if (!caller.gaveUp) lastError = error;
      },
    );
    // In the background: what keeps a process alive while a store is asked is the store's own connection.
    await pause(Math.min(withinMs / 3, withinMs - elapsed()), { until: asked, background: true });
    caller.gaveUp = true;
    if (answers.length > 0) return answers[0] as T;
    if (isStoreSetupError(lastError)) {
      over = true;
      throw lastError;
    }
    const leftMs = withinMs - elapsed();
    if (leftMs > 0) await pause(Math.min(leftMs, jittered(Math.min(1_000, 25 * 2 ** round))), { background });
    if (answers.length > 0) return answers[0] as T;
  }
  over = true;
  throw new TwiceproofError("STORE_UNAVAILABLE", "The store could not be reached in time.", {
    cause: lastError ?? new Error("no answer in time"),
    help: "See the cause for what the driver said.",
  });
}
