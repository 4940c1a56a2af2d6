import { claimId } from "../../src/id.ts";
import type { Run } from "../../src/run.ts";
import type { RunOptions } from "../../src/run-options.ts";
import type { Ticket } from "../../src/store.ts";
import type { Twiceproof } from "../../src/twiceproof.ts";
import { gate, until } from "./waiting.ts";
import type { World } from "./world.ts";

export const thread = "t";
export const threadId = claimId("default", "thread", thread);

export interface Held {
  readonly run: Run;
  /** Lets the body return. */
  readonly end: () => void;
  /** What became of the run. Rejections are looked at by whoever wants them. */
  readonly over: Promise<unknown>;
}

/** A run that holds the thread until it is let go. */
export async function hold(tp: Twiceproof, options: Partial<RunOptions> = {}): Promise<Held> {
  const { opened, open } = gate();
  const begun = Promise.withResolvers<Run>();
  const over = tp.withRun({ thread, ...options }, async (run) => {
    begun.resolve(run);
    await opened;
    return run.runId;
  });
  over.catch(begun.reject);
  return { run: await begun.promise, end: open, over };
}

export function lineOf(made: World): Promise<readonly Ticket[]> {
  return made.tp.store.line(threadId);
}

/** Waits until so many wait for the thread. */
export async function waiting(made: World, count: number): Promise<void> {
  await until(async () => (await lineOf(made)).length === count);
}
