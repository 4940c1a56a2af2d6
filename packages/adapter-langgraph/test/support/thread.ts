import { AIMessage, type BaseMessage, HumanMessage } from "@langchain/core/messages";
import type { RunnableConfig } from "@langchain/core/runnables";
import { END, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { createTwiceproof, type Twiceproof } from "@twiceproof/core";
import { expect } from "vitest";
import { type GuardGraphOptions, guardCheckpointer, guardGraph } from "../../src/index.ts";
import type { Kept } from "./places.ts";

export const thread = "thread";
export const config = { configurable: { thread_id: thread } };
export const operator = { who: "ana", why: "tried it" };

export function say(text: string): { messages: BaseMessage[] } {
  return { messages: [new HumanMessage(text)] };
}

/** In the midst of a run: what its node is given. */
export type Midst = (config: RunnableConfig, asked: string) => unknown;

/** A graph of two steps, each of which repeats what it was asked; in between it comes to `midst`. */
export function echo(kept: Kept, midst: Midst = () => undefined, options: Partial<GuardGraphOptions> = {}) {
  const tp = options.tp ?? createTwiceproof({ store: kept.store });
  const saver = guardCheckpointer(kept.saver, { tp });
  const asked = (messages: readonly BaseMessage[]) => messages.findLast(({ type }) => type === "human")?.text ?? "";
  const graph = new StateGraph(MessagesAnnotation)
    .addNode("first", async ({ messages }, given) => {
      await midst(given, asked(messages));
      return { messages: [new AIMessage(`first ${asked(messages)}`)] };
    })
    .addNode("second", ({ messages }) => ({ messages: [new AIMessage(`second ${asked(messages)}`)] }))
    .addEdge(START, "first")
    .addEdge("first", "second")
    .addEdge("second", END)
    .compile({ checkpointer: saver });
  return { tp, saver, graph: guardGraph(graph, { ...options, tp }) };
}

/** What the thread says, as any other reader finds it. */
export async function texts({ saver }: Kept, at: RunnableConfig = config): Promise<readonly string[]> {
  const tuple = await saver.getTuple({ configurable: { ...at.configurable } });
  const messages = (tuple?.checkpoint.channel_values.messages ?? []) as readonly BaseMessage[];
  return messages.map(({ text }) => text);
}

export async function unlock(tp: Twiceproof): Promise<void> {
  const { token } = (await tp.threads.get(thread)) ?? expect.fail("nobody holds it");
  expect(await tp.threads.unlock(thread, { token, ...operator })).toBe("unlocked");
}

export async function rows({ saver }: Kept): Promise<number> {
  let count = 0;
  for await (const { pendingWrites = [] } of saver.list(config)) count += 1 + pendingWrites.length;
  return count;
}
