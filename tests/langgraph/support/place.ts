import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { createTwiceproof, type Doubt, type Twiceproof } from "@twiceproof/core";
import { createDatabase } from "@twiceproof/test-servers";
import { sharedServer } from "@twiceproof/test-servers/vitest";
import { test, vi } from "vitest";
import { open } from "./open.ts";
import type { Where, WorkerSetup } from "./protocol.ts";
import { spawnWorker, type Worker } from "./spawn.ts";

/** Machines with two busy cores are slow: bounds are wide, and nothing waits for them to pass. */
vi.setConfig({ testTimeout: 60_000, maxConcurrency: 4 });
const withinMs = 25_000;

/** The databases of a saver and of the claims, the workers on them, and the witness of what the tool did. */
export interface Place {
  /** For what operators do. */
  readonly tp: Twiceproof;
  start(setup: Omit<WorkerSetup, "where" | "counter">): Promise<Worker>;
  /** How often the tool did its work, and in which processes. */
  acts(): readonly number[];
  /** Waits until the one effect is in doubt. */
  doubt(): Promise<Doubt>;
  /** What the thread says, message by message. */
  texts(thread: string): Promise<readonly string[]>;
  /** How many checkpoints the thread has, with the writes that hang on them. */
  checkpoints(thread: string): Promise<number>;
  /** Waits until so many wait for the thread. */
  queued(thread: string, count: number): Promise<void>;
  /** Waits until nobody who is alive holds the thread. */
  lapsed(thread: string): Promise<void>;
  /** A file that is not there yet, and the function that makes it. */
  flag(): { readonly path: string; readonly raise: () => void };
}

/** Tests mostly wait for leases to run out, so those of a file run side by side, each in a place of its own. */
export const it = test.extend<{ readonly openPlace: (on: Where["on"]) => Promise<Place> }>({
  openPlace: ({ onTestFinished }, use) =>
    use((on) => place(on, (run) => onTestFinished(async () => void (await run())))),
}).concurrent;

/** What is given to `onEnd` is called in reverse order when the test is over, however it ends. */
async function place(on: Where["on"], onEnd: (run: () => unknown) => void): Promise<Place> {
  const folder = mkdtempSync(join(tmpdir(), "twiceproof-"));
  onEnd(() => rmSync(folder, { recursive: true, force: true }));
  const counter = join(folder, "acts.jsonl");
  const where = await databases(on, folder, onEnd);
  const opened = open(where);
  onEnd(() => opened.close());
  await opened.migrate();
  const tp = createTwiceproof({ store: opened.store });
  onEnd(() => tp.close({ graceMs: 0 }));

  async function theDoubt(): Promise<Doubt | undefined> {
    return (await tp.doubts.list()).doubts[0];
  }

  return {
    tp,
    start: (setup) => spawnWorker({ ...setup, where, counter }, onEnd),
    acts: () => readActs(counter),
    async doubt() {
      await until("a doubt", async () => (await theDoubt()) !== undefined);
      const doubt = await theDoubt();
      if (doubt === undefined) throw new Error("the doubt is gone");
      return doubt;
    },
    async texts(thread) {
      const tuple = await opened.saver.getTuple({ configurable: { thread_id: thread } });
      const messages = (tuple?.checkpoint.channel_values.messages ?? []) as readonly { readonly text: string }[];
      return messages.map(({ text }) => text);
    },
    async checkpoints(thread) {
      let count = 0;
      for await (const { pendingWrites = [] } of opened.saver.list({ configurable: { thread_id: thread } }))
        count += 1 + pendingWrites.length;
      return count;
    },
    queued: (thread, count) =>
      until("somebody waits", async () => (await tp.threads.get(thread))?.queueDepth === count),
    lapsed: (thread) =>
      until("the thread's lease is over", async () => (await tp.threads.get(thread))?.liveness !== "live"),
    flag() {
      const path = join(folder, "flag");
      return { path, raise: () => writeFileSync(path, "") };
    },
  };
}

async function databases(on: Where["on"], folder: string, onEnd: (run: () => unknown) => void): Promise<Where> {
  switch (on) {
    case "sqlite":
      return { on, checkpoints: join(folder, "checkpoints.db"), claims: join(folder, "claims.db") };
    case "one sqlite":
      return { on, file: join(folder, "all.db") };
    case "postgres": {
      const database = await createDatabase(sharedServer("postgres").url);
      onEnd(() => database.drop());
      return { on, url: database.url };
    }
  }
}

export function readActs(counter: string): readonly number[] {
  if (!existsSync(counter)) return [];
  return readFileSync(counter, "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => (JSON.parse(line) as { readonly pid: number }).pid);
}

export async function until(what: string, check: () => boolean | Promise<boolean>): Promise<void> {
  const start = performance.now();
  while (!(await check())) {
    if (performance.now() - start > withinMs) throw new Error(`waited ${withinMs} ms in vain for ${what}`);
    await pause(20);
  }
}

export const operator = { who: "operator", why: "looked it up" };
