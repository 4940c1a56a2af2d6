import { type BaseCheckpointSaver, END, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { guardCheckpointer, guardGraph } from "@twiceproof/adapter-langgraph";
import type { Twiceproof } from "@twiceproof/core";
import { think } from "./model.ts";

const builder = new StateGraph(MessagesAnnotation)
  .addNode("answer", async ({ messages }, config) => ({ messages: await think(messages, config) }))
  .addEdge(START, "answer")
  .addEdge("answer", END);

export type Agent = ReturnType<typeof plainAgent>;

/** The agent with Twiceproof. */
export function guardedAgent(saver: BaseCheckpointSaver, tp: Twiceproof): Agent {
  return guardGraph(builder.compile({ checkpointer: guardCheckpointer(saver, { tp }) }), { tp });
}

/** The same agent without. */
export function plainAgent(saver: BaseCheckpointSaver) {
  return builder.compile({ checkpointer: saver });
}
