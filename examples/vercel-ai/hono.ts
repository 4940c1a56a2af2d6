import { serve } from "@hono/node-server";
import { withRun } from "@twiceproof/adapter-vercel-ai";
import { convertToModelMessages, createUIMessageStreamResponse, isStepCount, streamText, toUIMessageStream } from "ai";
import { Hono } from "hono";
import { app, saveChat } from "./lib/app.ts";
import { model } from "./lib/model.ts";
import { type ChatMessage, tools } from "./lib/tools.ts";

const hono = new Hono().post("/api/chat", async ({ req }) => {
  const { id, messages } = await req.json<{ id: string; messages: ChatMessage[] }>();
  return await withRun(app().tp, { thread: id }, async (run) => {
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
});

serve({ fetch: hono.fetch, hostname: "127.0.0.1", port: 0 }, ({ port }) => console.log(`http://127.0.0.1:${port}`));
