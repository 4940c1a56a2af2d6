import type { BaseCheckpointSaver } from "@langchain/langgraph-checkpoint";
import { effectTool, guardCheckpointer, guardGraph } from "@twiceproof/adapter-langgraph";
import { defineEffect, type Twiceproof } from "@twiceproof/core";
import { createAgent, tool } from "langchain";
import { z } from "zod";
import { chatModel } from "./model.ts";
import { orderReport } from "./order.ts";

const schema = z.object({ topic: z.string() });
const description = "Orders a research report on a topic. Takes long, and costs money.";

/** Short, so that the demo is. By default a silent worker is believed for 30 s. */
const leaseMs = 2_000;

/** The tool, as Twiceproof runs it. */
const research = defineEffect({
  name: "research",
  input: schema,
  run: ({ topic }, { idempotencyKey, signal }) => orderReport(topic, { idempotencyKey, signal }),
  leaseMs,
});

/** The agent with Twiceproof: three lines are other ones. */
export async function guardedAgent(saver: BaseCheckpointSaver, tp: Twiceproof) {
  const agent = createAgent({
    model: await chatModel(),
    tools: [effectTool(research, { tp, description })],
    checkpointer: guardCheckpointer(saver, { tp }),
  });
  return guardGraph(agent, { tp, leaseMs });
}

/** The same agent without. */
export async function plainAgent(saver: BaseCheckpointSaver) {
  return createAgent({
    model: await chatModel(),
    tools: [tool(({ topic }: z.infer<typeof schema>) => orderReport(topic), { name: "research", description, schema })],
    checkpointer: saver,
  });
}
