import { expect } from "vitest";

const boundMs = 10_000;

/** Polls, with a bound. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  await expect.poll(condition, { timeout: boundMs, interval: 5 }).toBe(true);
}

/** A gate that the test opens. */
export function gate(): { readonly opened: Promise<void>; readonly open: () => void } {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { opened: promise, open: resolve };
}

/** What a promise rejected with; fails when it did not. */
export async function rejection(
  promise: Promise<unknown>,
): Promise<{ code?: string; id?: string; message?: string; name?: string }> {
  const nothing = Symbol();
  const reason = await promise.then(
    () => nothing,
    (error: unknown) => error,
  );
  if (reason === nothing) throw new Error("expected a rejection");
  return reason as object;
}
