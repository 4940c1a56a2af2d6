import { type ChatRunOptions, withRun } from "@twiceproof/adapter-vercel-ai";
import { convertToModelMessages, createUIMessageStreamResponse, isStepCount, streamText, toUIMessageStream } from "ai";
import { app, saveChat } from "./app.ts";
import { model } from "./model.ts";
import { keepStream } from "./streams.ts";
import { type ChatMessage, tools } from "./tools.ts";

/** The route, guarded. Of two tabs that post at once, the second waits for the first, and shows the same. */
export async function guarded(request: Request, waitUntil?: ChatRunOptions["waitUntil"]): Promise<Response> {
  const { id, messages: posted } = (await request.json()) as { id: string; messages: ChatMessage[] };
  // With more than one user, the thread is the user's chat: both ids, and the user's from the session.
  const place = { thread: id, onBusy: "wait", maxWaitMs: 60_000, waitUntil } as const;
  return await withRun(app().tp, place, async (run) => {
    const messages = await run.repair(posted);
    // For a page that is loaded in the middle.
    saveChat(id, messages);
    const result = streamText({
      model: await model(),
      messages: await convertToModelMessages(messages),
      tools: run.tools(tools, { charge: "effect" }),
      toolApproval: { charge: "user-approval" },
      ...run.loop({ stopWhen: isStepCount(5) }),
    });
    return createUIMessageStreamResponse({
      stream: toUIMessageStream({
        ...run.stream,
        stream: result.stream,
        originalMessages: messages,
        onEnd: (end) => saveChat(id, end.messages),
      }),
      consumeSseStream: ({ stream }) => keepStream(id, stream),
    });
  });
}
