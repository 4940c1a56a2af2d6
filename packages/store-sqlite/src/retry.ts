import { isBusy, storeError } from "./errors.ts";

/** Captured when the module loads: fake timers that a user's test installs later must not stop a waiting claim. */
const { setTimeout } = globalThis;
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
      const mine = last.then(
        () => attempt(work, asked),
        () => attempt(work, asked),
      );
      last = mine;
      return mine;
    },
  };
}
