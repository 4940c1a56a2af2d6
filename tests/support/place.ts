import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { type ClaimRecord, createTwiceproof, type Doubt, type DoubtEvent, type Twiceproof } from "@twiceproof/core";
import { type ClaimSpace, claimId } from "@twiceproof/core/store";
import { sqliteStore } from "@twiceproof/store-sqlite";
import { test, vi } from "vitest";
import type { WorkerSetup } from "./protocol.ts";
import { spawnWorker, type Worker } from "./spawn.ts";

/** Machines with two busy cores are slow: bounds are wide, and nothing waits for them to pass. */
vi.setConfig({ testTimeout: 60_000 });
const withinMs = 25_000;

/** The shortest lease there is. */
export const leaseMs = 1_000;

/** One database, the workers on it, and a witness of their effects that the product knows nothing of. */
export interface Place {
  readonly file: string;
  /** For what operators do, and to look. */
  readonly tp: Twiceproof;
  start(setup?: Omit<WorkerSetup, "file" | "counter" | "transcript">): Promise<Worker>;
  /** How often this effect happened in the world. */
  acts(key: string): number;
  allActs(): readonly { readonly key: string; readonly token: number; readonly pid: number }[];
  effect(key: string): Promise<ClaimRecord | null>;
  lock(key: string): Promise<ClaimRecord | null>;
  thread(thread: string): Promise<ClaimRecord | null>;
  /** The ids of the runs that wait for a thread, first come first. */
  line(thread: string): Promise<readonly (string | null)[]>;
  /** Waits until these runs wait, in this order. */
  inLine(thread: string, ...runIds: readonly string[]): Promise<void>;
  /** Questions and answers of runs, in the order in which they were written. */
  transcript(): readonly string[];
  /** Waits until the effect is in doubt. */
  doubt(key: string): Promise<Doubt>;
  /** Waits until the lease of a thread's run, or of a lock, is over. */
  lapsed(key: string, space?: ClaimSpace): Promise<void>;
  history(key: string): Promise<readonly DoubtEvent[]>;
  /** A file that is not there yet, and the function that makes it. */
  flag(name: string): { readonly path: string; readonly raise: () => void };
}

/** Tests mostly wait for leases to run out, so those of a file run side by side, each in a place of its own. */
export const it = test.extend<{ readonly here: Place }>({
  here: ({ onTestFinished }, use) => use(place((run) => onTestFinished(async () => void (await run())))),
}).concurrent;

/** What is given to `onEnd` is called in reverse order when the test is over, however it ends. */
function place(onEnd: (run: () => unknown) => void): Place {
  const folder = mkdtempSync(join(tmpdir(), "twiceproof-"));
  onEnd(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, "app.db");
  const counter = join(folder, "effects.jsonl");
  const transcript = join(folder, "transcript.txt");
  const tp = createTwiceproof({ store: sqliteStore(file) });
  onEnd(() => tp.close({ graceMs: 0 }));

  async function read(space: ClaimSpace, key: string): Promise<ClaimRecord | null> {
    const [record] = await tp.store.get([claimId("default", space, key)]);
    return record ?? null;
  }

  async function line(thread: string): Promise<readonly (string | null)[]> {
    return (await tp.store.line(claimId("default", "thread", thread))).map(({ runId }) => runId);
  }

  function allActs(): { readonly key: string; readonly token: number; readonly pid: number }[] {
    if (!existsSync(counter)) return [];
    return readFileSync(counter, "utf8")
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line) as { readonly key: string; readonly token: number; readonly pid: number });
  }

  return {
    file,
    tp,
    start: (setup) => spawnWorker({ ...setup, file, counter, transcript }, onEnd),
    acts: (key) => allActs().filter((act) => act.key === key).length,
    allActs,
    effect: (key) => read("effect", key),
    lock: (key) => read("lock", key),
    thread: (thread) => read("thread", thread),
    line,
    async inLine(thread, ...runIds) {
      await until("a line of runs", async () => (await line(thread)).join() === runIds.join());
    },
    transcript: () => (existsSync(transcript) ? readFileSync(transcript, "utf8").split("\n").slice(0, -1) : []),
    async doubt(key) {
      await until("a doubt", async () => (await read("effect", key))?.state === "in-doubt");
      const doubt = await tp.doubts.get(claimId("default", "effect", key));
      if (doubt === null) throw new Error("the doubt is gone");
      return doubt;
    },
    lapsed: (key, space = "thread") =>
      until("a lapsed lease", async () => (await read(space, key))?.state === "lapsed"),
    history: (key) => tp.doubts.history(claimId("default", "effect", key)),
    flag(name) {
      const path = join(folder, name);
      return { path, raise: () => writeFileSync(path, "") };
    },
  };
}

export async function until(what: string, check: () => boolean | Promise<boolean>): Promise<void> {
  const start = performance.now();
  while (!(await check())) {
    if (performance.now() - start > withinMs) throw new Error(`waited ${withinMs} ms in vain for ${what}`);
    await pause(20);
  }
}

export const operator = { who: "operator", why: "looked it up" };
