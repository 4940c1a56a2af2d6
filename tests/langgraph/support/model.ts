import { AIMessage, type BaseMessage } from "@langchain/core/messages";
import { fakeModel } from "langchain";

/** Looks up what the last question asks, and hands on what it finds. It draws a new id for each tool call, as models do. */
export function curiousModel(): ReturnType<typeof fakeModel> {
  const model = fakeModel();
  for (let calls = 0; calls < 200; calls++) model.respond(think);
  return model;
}

function think(messages: BaseMessage[]): AIMessage {
  const last = messages.at(-1);
  if (last?.type === "tool") return new AIMessage(last.text);
  const topic = messages.findLast(({ type }) => type === "human")?.text;
  const id = `call_${crypto.randomUUID()}`;
  return new AIMessage({ content: "", tool_calls: [{ type: "tool_call", id, name: "research", args: { topic } }] });
}
