import { convertToModelMessages, createUIMessageStreamResponse, isStepCount, streamText, toUIMessageStream } from "ai";
import { saveChat } from "../../../lib/app.ts";
import { model } from "../../../lib/model.ts";
import { type ChatMessage, tools } from "../../../lib/tools.ts";

export async function POST(request: Request): Promise<Response> {
  const { id, messages } = (await request.json()) as { id: string; messages: ChatMessage[] };
  const result = streamText({
    model: await model(),
    messages: await convertToModelMessages(messages),
    tools,
    toolApproval: { charge: "user-approval" },
    stopWhen: isStepCount(5),
  });
  return createUIMessageStreamResponse({
    stream: toUIMessageStream({
      stream: result.stream,
      originalMessages: messages,
      onEnd: (end) => saveChat(id, end.messages),
    }),
  });
}
