import { setTimeout } from "node:timers";
import { isTwiceproofError } from "@twiceproof/core/store";
import { isPassing, unavailable } from "./errors.ts";

/** Timers from `node:timers`, and the clock captured: fakes in a user's test must not stop a waiting claim. */
const monotonic = performance.now.bind(performance);

const withinMs = 10_000;
const longestPauseMs = 100;

/**
 * Asks until there is an answer: again at once after the first time, which is when another transaction has just committed,
 * then after jittered pauses. Gives up after ten seconds, with the last error.
 */
export async function untilAnswered<T>(ask: () => Promise<T | undefined>): Promise<T> {
  const start = monotonic();
  for (let round = 0; ; round++) {
    let passing: unknown;
    try {
      const answer = await ask();
      if (answer !== undefined) return answer;
    } catch (error) {
      // Ours was waited for already.
      if (isTwiceproofError(error) || !isPassing(error)) throw error;
      passing = error;
    }
    const pauseMs = Math.min(longestPauseMs, 2 ** round) * (0.5 + Math.random() / 2);
    if (monotonic() - start + pauseMs > withinMs)
      throw passing ?? unavailable("Other transactions kept changing the row.");
    if (round > 0) await pause(pauseMs);
  }
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
