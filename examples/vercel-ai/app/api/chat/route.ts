import { withRun } from "@twiceproof/adapter-vercel-ai";
import { convertToModelMessages, createUIMessageStreamResponse, isStepCount, streamText, toUIMessageStream } from "ai";
import { after } from "next/server";
import { app, saveChat } from "../../../lib/app.ts";
import { model } from "../../../lib/model.ts";
import { type ChatMessage, tools } from "../../../lib/tools.ts";
import { unguarded } from "../../../lib/unguarded.ts";

export function POST(request: Request): Promise<Response> {
  return process.env.GUARD === "off" ? unguarded(request) : guarded(request);
}

async function guarded(request: Request): Promise<Response> {
  const { id, messages } = (await request.json()) as { id: string; messages: ChatMessage[] };
  // With more than one user, the thread is the user's chat: both ids, and the user's from the session.
  return await withRun(app().tp, { thread: id, waitUntil: after }, async (run) => {
    const result = streamText({
      model: await model(),
      messages: await convertToModelMessages(await run.repair(messages)),
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
    });
  });
}
