import { appendFileSync, existsSync } from "node:fs";
import { flushCompileCache } from "node:module";
import { effectTool, guardCheckpointer, guardGraph } from "@twiceproof/adapter-langgraph";
import { createTwiceproof, defineEffect, findTwiceproofError, type Store } from "@twiceproof/core";
import { createAgent, tool } from "langchain";
import { z } from "zod";
import { curiousModel } from "./model.ts";
import { open } from "./open.ts";
import type { Dispatch, FromWorker, Notice, Outcome, ToWorker, WorkerSetup } from "./protocol.ts";

/** One worker process: `node worker.ts <WorkerSetup as JSON>`, told what to do by its parent. */
const setup = JSON.parse(process.argv[2] ?? "") as WorkerSetup;
const opened = open(setup.where);
const tp = createTwiceproof({ store: noticing(opened.store) });

const schema = z.object({ topic: z.string() });
const description = "Looks a topic up. Takes long, and costs money.";

/** Its work is one line in a file that only grows. */
async function look({ topic }: z.infer<typeof schema>): Promise<string> {
  const letOn = Promise.withResolvers<void>();
  goOn = letOn.resolve;
  appendFileSync(setup.counter, `${JSON.stringify({ topic, pid: process.pid })}\n`, { flag: "a" });
  await at("in the tool");
  if (setup.stops) await letOn.promise;
  if (setup.blockUntil !== undefined) blockUntil(setup.blockUntil);
  return `${topic}, by ${process.pid}`;
}

let goOn = (): void => undefined;

/** Nothing of this process moves meanwhile, but for the operating system's own threads. */
function blockUntil(file: string): void {
  const cell = new Int32Array(new SharedArrayBuffer(4));
  while (!existsSync(file)) Atomics.wait(cell, 0, 0, 10);
}

const research = defineEffect({ name: "research", input: schema, run: look, leaseMs: 1_000 });
const saver = setup.guarded ? guardCheckpointer(opened.saver, { tp }) : opened.saver;
const graph = setup.guarded
  ? guardGraph(
      createAgent({
        model: curiousModel(),
        tools: [effectTool(research, { tp, description })],
        checkpointer: saver,
      }),
      { tp, onBusy: setup.onBusy, maxQueue: 20, maxWaitMs: 50_000, leaseMs: setup.leaseMs ?? 4_000 },
    )
  : createAgent({
      model: curiousModel(),
      tools: [tool(look, { name: "research", description, schema })],
      checkpointer: saver,
    });

async function run({ thread, runId, sent, topic = thread }: Dispatch): Promise<Outcome> {
  const message = { messages: [{ role: "user" as const, content: topic }] };
  const input = sent === "nothing" ? null : message;
  try {
    switch (sent) {
      case "an edit":
        await graph.updateState({ configurable: { thread_id: thread } }, message, "tools");
        return { answer: "", messages: [] };
      case "a deletion":
        await saver.deleteThread(thread);
        return { answer: "", messages: [] };
      case "input":
      case "nothing":
    }
    const { messages } = await graph.invoke(input as never, {
      runId,
      configurable: { thread_id: thread },
      // Sees to it that the checkpoint which the tool hangs on is there before the tool starts, as guardGraph does.
      ...(!setup.guarded && { durability: "sync" }),
    });
    const answer = messages.at(-1)?.text ?? "";
    return { answer, messages: messages.map(({ type }) => type) };
  } catch (error) {
    return { code: findTwiceproofError(error)?.code ?? "none", message: String(error) };
  }
}

function noticing(store: Store): Store {
  return {
    ...store,
    async claim(requests) {
      const answers = await store.claim(requests);
      if (answers.some(({ answer }) => answer === "taken")) await at("met a claim");
      return answers;
    },
  };
}

/** Resolves when the message is on its way. */
function at(notice: Notice): Promise<void> {
  return say({ type: "at", notice });
}

function say(message: FromWorker): Promise<void> {
  return new Promise((resolve) => process.send?.(message, undefined, undefined, () => resolve()));
}

process.on("message", async (message: ToWorker) => {
  switch (message.type) {
    case "go on":
      return goOn();
    case "dispatch":
      return await say({ type: "outcome", id: message.id, outcome: await run(message.dispatch) });
  }
});
process.on("disconnect", () => process.exit());
// A worker that is killed would leave nothing to the next one.
flushCompileCache();
await at("ready");
