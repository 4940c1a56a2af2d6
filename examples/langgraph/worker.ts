import { setTimeout as pause } from "node:timers/promises";
import { createTwiceproof, findTwiceproofError, isInDoubt, isThreadBusy } from "@twiceproof/core";
import { guardedAgent, plainAgent } from "./agent.ts";
import { openDatabases } from "./databases.ts";
import { say } from "./processes.ts";

/** What the dispatcher sends. No `question`: go on from the last checkpoint. `guarded`: with Twiceproof. */
export interface Job {
  readonly guarded: boolean;
  readonly thread: string;
  readonly runId: string;
  readonly question: string | null;
}

export type WorkerSaid =
  | { readonly say: "started" }
  | { readonly say: "answer"; readonly answer: string }
  | { readonly say: "in doubt"; readonly message: string };

/** One for each process. All of them open the same databases. */
const databases = openDatabases();
const tp = createTwiceproof({ store: databases.store });

async function work(job: Job): Promise<WorkerSaid> {
  const { guarded, thread, runId, question } = job;
  const agent = guarded ? await guardedAgent(databases.saver, tp) : await plainAgent(databases.saver);
  const input = question === null ? null : { messages: [{ role: "user" as const, content: question }] };
  try {
    // Without Twiceproof too, the tool starts when the checkpoint that asks for it is stored.
    const config = { runId, configurable: { thread_id: thread }, ...(!guarded && { durability: "sync" as const }) };
    const { messages } = await agent.invoke(input as never, config);
    return { say: "answer", answer: messages.at(-1)?.text ?? "" };
  } catch (error) {
    if (isInDoubt(error)) return { say: "in doubt", message: (error as Error).message };
    if (!isThreadBusy(error)) throw error;
    // Another worker is at it, or was and has died: it is sent once more, as a queue does.
    await pause(findTwiceproofError(error)?.retryAfterMs);
    return await work(job);
  }
}

process.once("disconnect", () => process.exit());
await say<WorkerSaid>({ say: "started" });
await say(await work(JSON.parse(process.argv[2] ?? "") as Job));
await tp.close();
await databases.close();
process.disconnect();
