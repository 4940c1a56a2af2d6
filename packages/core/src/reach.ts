import { afterTurn, jittered, monotonicStopwatch, pause, type Stopwatch, timer } from "./clock.ts";
import { isFinal, isTwiceproofError, TwiceproofError } from "./errors.ts";
import type { Caller } from "./lane.ts";

interface ReachOptions<T> {
  readonly withinMs: number;
  /** Does not keep the process alive. */
  readonly background?: boolean;
  /** Set-up errors are asked about again as well: what is to be recorded happened already. */
  readonly patient?: boolean;
  /** An answer that came after the question was given up; it must be taken care of, not lost. */
  readonly onLate?: (answer: T) => void;
}

/**
 * Asks the store until it answers, or `withinMs` are over. The question must be repeatable: it carries an attempt or a
 * decision id, so that an answer that was lost on the way can be asked for again (promise 13). A question without an
 * answer is asked again, on another connection perhaps, after a third of the time; the first answer to any of them counts.
 * The time is one that passed for this process: after a machine's sleep the connections are dead, and the store is not.
 *
 * @throws TwiceproofError `STORE_UNAVAILABLE`, or the store's own error about its set-up, which no repetition mends.
 */
export async function reach<T>(ask: (caller: Caller) => Promise<T>, options: ReachOptions<T>): Promise<T> {
  const { withinMs, background = false, patient = false, onLate } = options;
  // Not a list, and `onSent` is taken back: V8 takes for long-lived what many calls made early in a process, and then what is
  // dead in its old space keeps whole calls alive there, each copied by the next scavenge (25 ms, instead of 3).
  let isAnswered = false;
  let first: T | undefined;
  let elapsed: Stopwatch | undefined;
  let over = false;
  let silent = false;
  let lastError: unknown;
  let wake = (): void => undefined;

  function leftMs(): number {
    return withinMs - (elapsed?.() ?? 0);
  }

  /** One ask, until any ask is answered, this one fails, or its share of the time is over. */
  function round(caller: Caller): Promise<void> {
    return new Promise((resolve) => {
      let cancel: (() => void) | undefined;
      wake = () => {
        cancel?.();
        resolve();
      };
      caller.onSent = () => {
        elapsed ??= monotonicStopwatch();
        // In the background: what keeps a process alive while a store is asked is the store's own connection.
        cancel ??= timer(Math.min(withinMs / 3, leftMs()), resolve, { background: true });
      };
      ask(caller).then(
        (answer) => {
          if (over) onLate?.(answer);
          else if (!isAnswered) {
            isAnswered = true;
            first = answer;
          }
          wake();
        },
        (error: unknown) => {
          lastError = caller.gaveUp ? (lastError ?? error) : error;
          if (caller.gaveUp) return;
          silent = false;
          wake();
        },
      );
      // A question that has to queue behind others in this process says nothing about the store.
      if (!caller.queued) caller.onSent();
    });
  }

  for (let asked = 0; asked === 0 || leftMs() > 0; asked++) {
    const caller: Caller = { gaveUp: false, alone: silent };
    silent = true;
    await round(caller);
    // After a blocked event loop, timers come first: the answer may be waiting behind this one.
    if (!isAnswered && silent) await new Promise<void>(afterTurn);
    caller.gaveUp = true;
    caller.onSent = undefined;
    if (isAnswered) return first as T;
    if (isFinal(lastError) && (!patient || lastError.code === "STORE_CLOSED")) {
      over = true;
      throw lastError;
    }
    const restMs = Math.min(leftMs(), jittered(Math.min(1_000, 25 * 2 ** asked)));
    if (restMs > 0) await pause(restMs, { until: new Promise<void>((resolve) => (wake = resolve)), background });
    if (isAnswered) return first as T;
  }
  over = true;
  throw unreachable(lastError ?? new Error("no answer in time"));
}

/** A store's own words say more than ours. */
function unreachable(cause: unknown): TwiceproofError {
  const own = isTwiceproofError(cause) ? cause : undefined;
  const message = `The store could not be reached in time.${own ? ` ${own.message}` : ""}`;
  return new TwiceproofError("STORE_UNAVAILABLE", message, {
    cause,
    help: own?.help || "See the cause for what the driver said.",
  });
}
