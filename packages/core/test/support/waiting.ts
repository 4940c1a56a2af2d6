import { vi } from "vitest";

export interface Gate {
  readonly opened: Promise<void>;
  readonly open: () => void;
}

/** Holds something up until the test lets it go. */
export function gate(): Gate {
  let open = (): void => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}

/** Polls for a condition, with a bound. */
export async function until(holds: () => boolean | Promise<boolean>, withinMs = 4_000): Promise<void> {
  await vi.waitFor(
    async () => {
      if (!(await holds())) throw new Error("the condition was not met in time");
    },
    { timeout: withinMs, interval: 5 },
  );
}

const ran = new Error("a body was started that must not be");

/** The body of a call that must not execute. A doubt that it leaves passes for no other doubt: see `rejection`. */
export function notRun(): never {
  throw ran;
}

/** What a promise was rejected with; fails the test when it was not, or when `notRun` was started. */
export async function rejection(promise: Promise<unknown>): Promise<unknown> {
  const outcome = await promise.then(
    (value) => ({ value }),
    (error: unknown) => ({ error }),
  );
  if ("value" in outcome) throw new Error("expected a rejection");
  for (let error = outcome.error; error instanceof Error; error = error.cause) if (error === ran) throw error;
  return outcome.error;
}
