import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createTwiceproof, memoryStore, type Store, type Twiceproof, type TwiceproofEvent } from "@twiceproof/core";
import { sqliteStore } from "@twiceproof/store-sqlite";
import { onTestFinished, vi } from "vitest";

export type StoreName = "memory" | "SQLite";

export interface World {
  readonly tp: Twiceproof;
  /** Another worker on the same store. */
  readonly other: Twiceproof;
  /** What both workers told. */
  readonly events: readonly TwiceproofEvent[];
  /** How often a body of this name was started. */
  executions(name: string): number;
}

/** Two workers on one store, for one test. */
export function world(storeName: StoreName): World {
  const events: TwiceproofEvent[] = [];
  const worker = (store: Store): Twiceproof => createTwiceproof({ store, onEvent: (event) => events.push(event) });
  const [one, two] = storeName === "memory" ? shared(memoryStore()) : files();
  const tp = worker(one);
  const other = worker(two);
  onTestFinished(async () => {
    await Promise.all([tp.close({ graceMs: 0 }), other.close({ graceMs: 0 })]);
  });
  return {
    tp,
    other,
    events,
    executions: (name) => events.filter((event) => event.type === "executing" && event.name === name).length,
  };
}

function shared(store: Store): [Store, Store] {
  return [store, store];
}

function files(): [Store, Store] {
  const directory = mkdtempSync(join(tmpdir(), "twiceproof-ai-"));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  const path = join(directory, "app.db");
  return [sqliteStore(path), sqliteStore(path)];
}

export interface Gate {
  readonly opened: Promise<void>;
  readonly open: () => void;
}

/** Holds something up until the test lets it go. */
export function gate(): Gate {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { opened: promise, open: resolve };
}

/** Polls for a condition, with a bound. */
export async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  const check = async (): Promise<void> => {
    if (!(await holds())) throw new Error("the condition was not met in time");
  };
  await vi.waitFor(check, { timeout: 8_000, interval: 5 });
}

/** Lets everything that is about to happen on this store happen: a few runs on a thread of their own, one after the other. */
export async function settled(tp: Twiceproof): Promise<void> {
  for (let times = 0; times < 5; times++) await tp.withRun({ thread: "nobody's" }, () => undefined);
}

/** What a promise was rejected with; fails the test when it was not. */
export async function rejection(promise: Promise<unknown>): Promise<unknown> {
  const outcome = await promise.then(
    () => ({ rejected: false }) as const,
    (error: unknown) => ({ rejected: true, error }) as const,
  );
  if (!outcome.rejected) throw new Error("expected a rejection");
  return outcome.error;
}
