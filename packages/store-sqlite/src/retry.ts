import { performance } from "node:perf_hooks";
import { setTimeout } from "node:timers";
import { isBusy, storeError } from "./errors.ts";

/** From `node:timers` and `node:perf_hooks`, and captured: fakes in a user's test must not stop a waiting claim. */
const monotonic = performance.now.bind(performance);

const withinMs = 10_000;
const firstPauseMs = 4;
const longestPauseMs = 100;

export interface Patience {
  /** Tries until the database is free, with jittered pauses in which the event loop runs. */
  attempt<T>(work: () => Promise<T>): Promise<T>;
  /** The same, one after the other: a hundred callers must not each block the event loop on one lock. */
  inTurn<T>(work: () => Promise<T>): Promise<T>;
}

/** Gives up ten seconds after it was asked, with `STORE_UNAVAILABLE` and the driver's error as its cause. */
export function patience(): Patience {
  let last: Promise<unknown> = Promise.resolve();
  /** What the one before had to say, if it gave up. */
  let failure: unknown;

  async function attempt<T>(work: () => Promise<T>, asked: number): Promise<T> {
    for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(longestPauseMs, pauseMs * 2)) {
      try {
        return await work();
      } catch (error) {
        if (!isBusy(error)) throw storeError(error);
        // Also before giving up, so that those who wait behind do not block the event loop together.
        await new Promise((resolve) => setTimeout(resolve, pauseMs * (0.5 + Math.random() / 2)));
        if (monotonic() - asked > withinMs) throw storeError(error);
      }
    }
  }

  return {
    attempt: (work) => attempt(work, monotonic()),
    inTurn(work) {
      const asked = monotonic();
      const tryIt = async () => {
        // Whoever has waited its time behind a locked database does not try once more: hundreds would block the event loop.
        if (failure !== undefined && monotonic() - asked > withinMs) throw failure;
        try {
          const done = await attempt(work, asked);
          failure = undefined;
          return done;
        } catch (error) {
          failure = error;
          throw error;
        }
      };
      const mine = last.then(tryIt, tryIt);
      last = mine;
      return mine;
    },
  };
}
