import type { AIMessageChunk, BaseMessage } from "@langchain/core/messages";
import type { RunnableConfig } from "@langchain/core/runnables";
import { FakeListChatModel } from "@langchain/core/utils/testing";

export function answerTo(question: string): string {
  return `You said ${question}.`;
}

/** Stands for a model that streams. It takes a fifth of a second, and three seconds when it is asked to answer at length. */
export async function think(messages: readonly BaseMessage[], config: RunnableConfig): Promise<AIMessageChunk> {
  const question = messages.findLast(({ type }) => type === "human")?.text ?? "";
  const answer = answerTo(question);
  const thinkMs = question.endsWith("at length") ? 3_000 : 200;
  const model = new FakeListChatModel({ responses: [answer], sleep: Math.ceil(thinkMs / answer.length) });
  const message = await model.invoke([...messages], config);
  // The worst moment: the answer is there, and is not stored. What stops is the whole process, its heartbeats too.
  if (question === process.env.STAND_STILL_AFTER) process.kill(process.pid, "SIGSTOP");
  return message;
}
