import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage, type BaseMessage } from "@langchain/core/messages";
import { fakeModel, initChatModel } from "langchain";

/** `MODEL=openai:gpt-5-mini` and the like take a real one; its package and key are yours to bring. */
export async function chatModel(): Promise<BaseChatModel> {
  if (process.env.MODEL) return await initChatModel(process.env.MODEL);
  const model = fakeModel();
  for (let calls = 0; calls < 10; calls++) model.respond(think);
  return model;
}

/** What any model would do here: order the report, then hand it on. It draws a new id for each tool call, as models do. */
function think(messages: BaseMessage[]): AIMessage {
  const last = messages.at(-1);
  if (last?.type === "tool") return new AIMessage(last.text);
  const question = messages.findLast(({ type }) => type === "human")?.text;
  const topic = question?.match(/report on (\w+)/)?.[1];
  const id = `call_${crypto.randomUUID()}`;
  return new AIMessage({ content: "", tool_calls: [{ type: "tool_call", id, name: "research", args: { topic } }] });
}
