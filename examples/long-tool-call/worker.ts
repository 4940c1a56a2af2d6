import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { createTwiceproof, findTwiceproofError, isInDoubt, isRunning } from "@twiceproof/core";
import { sqliteStore } from "@twiceproof/store-sqlite";
import { type Charge, charge, type Order, postCharge } from "./charge.ts";
import { say } from "./processes.ts";

/** What the platform sends to a worker. `guarded`: with Twiceproof. */
export type Job =
  | { readonly tool: "charge"; readonly guarded: boolean; readonly order: Order }
  | { readonly tool: "turn"; readonly guarded: boolean; readonly runId: string; readonly threadFile: string };

export type WorkerSaid =
  | { readonly say: "waiting" }
  | { readonly say: "charged"; readonly charge: Charge }
  | { readonly say: "in doubt"; readonly message: string }
  | { readonly say: "read" }
  | { readonly say: "stored" }
  | { readonly say: "refused"; readonly code: string; readonly heldBy: string | null };

/** One for each process. All of them open the same file. */
const tp = createTwiceproof({ store: sqliteStore(process.env.DATABASE ?? ""), effects: [charge] });

async function pay(order: Order): Promise<WorkerSaid> {
  for (;;) {
    try {
      return { say: "charged", charge: await tp.once(charge, order) };
    } catch (error) {
      if (isInDoubt(error)) return { say: "in doubt", message: (error as Error).message };
      if (!isRunning(error)) throw error;
      // Another worker is at it. To ask again is safe: only a claim runs the tool.
      await say<WorkerSaid>({ say: "waiting" });
    }
  }
}

async function payUnguarded(order: Order): Promise<WorkerSaid> {
  return { say: "charged", charge: await postCharge(order, order.orderId) };
}

/** An agent's turn: read the thread, let the model think, store the thread with the new turn. */
async function turn(runId: string, threadFile: string): Promise<void> {
  const turns = JSON.parse(await readFile(threadFile, "utf8")) as string[];
  const thought = once(process, "message");
  await say<WorkerSaid>({ say: "read" });
  await thought; // The model thinks until the stage says "go on".
  await writeFile(threadFile, JSON.stringify([...turns, runId]));
}

async function takeTurn(runId: string, threadFile: string): Promise<WorkerSaid> {
  try {
    await tp.withRun({ thread: "support-42", runId }, () => turn(runId, threadFile));
    return { say: "stored" };
  } catch (error) {
    const busy = findTwiceproofError(error, "THREAD_BUSY");
    if (busy === undefined) throw error;
    return { say: "refused", code: busy.code, heldBy: busy.holder?.runId ?? null };
  }
}

async function takeTurnUnguarded(runId: string, threadFile: string): Promise<WorkerSaid> {
  await turn(runId, threadFile);
  return { say: "stored" };
}

async function work(job: Job): Promise<WorkerSaid> {
  switch (job.tool) {
    case "charge":
      return job.guarded ? await pay(job.order) : await payUnguarded(job.order);
    case "turn": {
      const { runId, threadFile } = job;
      return job.guarded ? await takeTurn(runId, threadFile) : await takeTurnUnguarded(runId, threadFile);
    }
  }
}

process.once("disconnect", () => process.exit());
await say(await work(JSON.parse(process.argv[2] ?? "") as Job));
await tp.close();
process.disconnect();
