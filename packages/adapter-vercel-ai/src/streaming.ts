import { types } from "node:util";

/** The SDK must get a generator's iterable at once: a promise of one breaks `generateText` in 5 and 6. */
export function isStreaming(execute: unknown): boolean {
  return types.isGeneratorFunction(execute) && types.isAsyncFunction(execute);
}

export function isAsyncIterable(value: unknown): value is AsyncIterable<unknown> {
  return typeof value === "object" && value !== null && Symbol.asyncIterator in value;
}

/** What a generator comes to is its last yield, as the SDK sees it. */
export async function lastOf(values: AsyncIterable<unknown>, heard?: (value: unknown) => void): Promise<unknown> {
  let last: unknown;
  for await (const value of values) {
    last = value;
    heard?.(value);
  }
  return last;
}

/**
 * Passes on what `start` tells of while it works, and in the end its outcome: the live yields, then the recorded result.
 * Who stops listening stops nothing: the effect goes on and is recorded.
 */
export async function* follow(
  start: (heard: (value: unknown) => void) => Promise<unknown>,
): AsyncGenerator<unknown, void> {
  const heard: unknown[] = [];
  let wake = Promise.withResolvers<void>();
  let over = false;
  const outcome = start((value) => {
    heard.push(value);
    wake.resolve();
  });
  const end = (): void => {
    over = true;
    wake.resolve();
  };
  // Its rejection is told by the last line, if anybody still listens, and by the run's doubts.
  outcome.then(end, end);
  while (!over || heard.length > 0) {
    await wake.promise;
    wake = Promise.withResolvers();
    if (over) wake.resolve();
    yield* heard.splice(0);
  }
  yield await outcome;
}
