import { setTimeout } from "node:timers";
import { isPassing, storeError } from "./errors.ts";

/** Timers from `node:timers`, and the clock captured: fakes in a user's test must not stop a waiting claim. */
const monotonic = performance.now.bind(performance);

const withinMs = 10_000;
const firstPauseMs = 4;
const longestPauseMs = 100;

/**
 * Repeats what a deadlock or a blocked row undid, after jittered pauses in which no connection is held. `work` carries
 * its attempt or decision id, so that whatever did land is recognised (promise 13).
 *
 * @throws TwiceproofError `STORE_UNAVAILABLE` after ten seconds, with the driver's error as its cause.
 */
export async function patiently<T>(work: () => Promise<T>): Promise<T> {
  const asked = monotonic();
  for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(longestPauseMs, pauseMs * 2)) {
    try {
      return await work();
    } catch (error) {
      if (!isPassing(error) || monotonic() - asked > withinMs) throw storeError(error);
      await new Promise((resolve) => setTimeout(resolve, pauseMs * (0.5 + Math.random() / 2)));
    }
  }
}
