import { AsyncLocalStorage } from "node:async_hooks";
import { TwiceproofError } from "./errors.ts";
import type { ClaimKind } from "./store.ts";

/** One claim whose body is running, and the one around it. */
export interface Frame {
  readonly id: string;
  readonly kind: ClaimKind;
  outer: Frame | undefined;
  /** Calls made inside this body. While there is one, this claim is never released (promise 19). */
  readonly nested: Set<Nesting>;
  /** What was started inside may outlive the body, and then waits for nothing of it. */
  over: boolean;
}

export interface Nesting {
  /** It won a claim that was not released: it counts for good. */
  claimed: boolean;
}

/** On `globalThis`, because bundles come twice: a body of one copy may call the other. The number goes up when the shape changes. */
const key = Symbol.for("twiceproof.chain/1");
const globals = globalThis as { [key]?: AsyncLocalStorage<Frame> };
globals[key] ??= new AsyncLocalStorage<Frame>();
const current = globals[key];

/** The bodies around this call that are not over, from the inside out. */
export function frames(): Frame[] {
  const all: Frame[] = [];
  for (let frame = living(current.getStore()); frame !== undefined; frame = living(frame.outer)) {
    // Cut out what is over: a body that always starts its successor would keep all its predecessors.
    frame.outer = living(frame.outer);
    all.push(frame);
  }
  return all;
}

/** Whether an effect is under way around this call: what it throws then counts as that effect's, and what it returns as its result. */
export function isInsideEffect(): boolean {
  return frames().some(({ kind }) => kind === "effect");
}

function living(frame: Frame | undefined): Frame | undefined {
  let next = frame;
  while (next?.over) next = next.outer;
  return next;
}

export async function inFrame<T>(id: string, kind: ClaimKind, run: (frame: Frame) => Promise<T>): Promise<T> {
  const frame: Frame = { id, kind, outer: frames()[0], nested: new Set(), over: false };
  try {
    return await current.run(frame, () => run(frame));
  } finally {
    frame.over = true;
  }
}

/** Counts against all bodies around it while it is under way: what it asked for may still be granted. */
export async function nest<T>(run: (nesting: Nesting) => Promise<T>): Promise<T> {
  const nesting: Nesting = { claimed: false };
  const around = frames();
  for (const frame of around) frame.nested.add(nesting);
  try {
    return await run(nesting);
  } finally {
    if (!nesting.claimed) for (const frame of around) frame.nested.delete(nesting);
  }
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
