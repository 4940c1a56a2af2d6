import { convertToModelMessages, createUIMessageStreamResponse, isStepCount, streamText, toUIMessageStream } from "ai";
import { saveChat } from "./app.ts";
import { model } from "./model.ts";
import { type ChatMessage, tools } from "./tools.ts";

/** The route before it was guarded, to compare: as the AI SDK's own guide has it. */
export async function unguarded(request: Request): Promise<Response> {
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
