import { setTimeout as pause } from "node:timers/promises";
import { createTwiceproof } from "@twiceproof/core";
import { randomId, type Store } from "@twiceproof/core/store";
import type { SubjectName } from "./subject.ts";

/** One of the ways to have a thread to oneself. */
export interface Lock {
  /** Calls the body once nobody else has the thread; resolves when that is written down as over. */
  run(thread: string, body: () => Promise<void>): Promise<void>;
}

/** `raw`: a row taken and given back with one statement each. `advisory`: the server's own, which SQLite has none of. */
export type LockName = "twiceproof" | "twiceproof, LISTEN" | "raw" | "advisory";

/** Makes a worker each time it is called; what one worker knows of its own releases, the others have to find out. */
type Locks = Readonly<Partial<Record<LockName, () => Lock>>> & Readonly<Record<"twiceproof" | "raw", () => Lock>>;

export interface LockSubject {
  readonly name: SubjectName;
  readonly versions: Readonly<Record<string, string>>;
  readonly locks: Locks;
  close(): Promise<void>;
}

/** As an application does it, with all that a run is besides its lock. */
export function worker(store: Store): Lock {
  const tp = createTwiceproof({ store, namespace: "bench" });
  return {
    run: (thread, body) => tp.withRun({ thread, onBusy: "wait", maxWaitMs: 60_000, maxQueue: 100 }, body),
  };
}

export interface RawLock {
  /** Whether it was free. */
  take(thread: string, attemptId: string): Promise<boolean>;
  release(thread: string, attemptId: string): Promise<unknown>;
}

export const holder = "bench-worker:12345:0f0f0f";
export const leaseMs = 30_000;
const pollMs = 10;

/** Whoever finds it taken tries again, in no order. */
export function rawLock({ take, release }: RawLock): Lock {
  return {
    async run(thread, body) {
      const attemptId = randomId();
      while (!(await take(thread, attemptId))) await pause(pollMs * (0.5 + Math.random() / 2));
      await body();
      await release(thread, attemptId);
    },
  };
}
