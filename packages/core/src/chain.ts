import { AsyncLocalStorage } from "node:async_hooks";
import { TwiceproofError } from "./errors.ts";
import type { ClaimKind } from "./store.ts";

/** One claim whose body is running, and the one around it. */
export interface Frame {
  readonly id: string;
  readonly kind: ClaimKind;
  readonly outer: Frame | undefined;
  /** Claims won inside this body that were not released since. While there is one, this claim is never released (promise 19). */
  readonly nested: Set<string>;
}

const current = new AsyncLocalStorage<Frame>();

export function frames(): Frame[] {
  const all: Frame[] = [];
  for (let frame = current.getStore(); frame !== undefined; frame = frame.outer) all.push(frame);
  return all;
}

export function inFrame<T>(id: string, kind: ClaimKind, run: (frame: Frame) => T): T {
  const frame: Frame = { id, kind, outer: current.getStore(), nested: new Set() };
  return current.run(frame, () => run(frame));
}

/**
 * A body that asks for its own claim would wait for itself. Told at once where the asynchronous context says so;
 * where it was lost (a queue of the user's), the caller's `waitMs` bounds the wait.
 *
 * @throws TwiceproofError `WAITS_FOR_ITSELF`
 */
export function refuseSelfWait(id: string, what: string): void {
  if (frames().some((frame) => frame.id === id))
    throw new TwiceproofError(
      "WAITS_FOR_ITSELF",
      `${what} was started from inside itself and would wait for itself forever. Nothing was claimed.`,
      { id },
    );
}
