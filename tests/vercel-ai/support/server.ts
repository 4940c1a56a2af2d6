// An application on node:http, with one version of the SDK: `node server.ts <ServerSetup as JSON>`.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { json } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import { type ChatRun, withRun } from "@twiceproof/adapter-vercel-ai";
import { createTwiceproof } from "@twiceproof/core";
import { sqliteStore } from "@twiceproof/store-sqlite";
import { z } from "zod";
import { scripted } from "./model.ts";
import type { Post, ServerSetup } from "./protocol.ts";

const { version, file, payments, leaseMs } = JSON.parse(process.argv[2] ?? "") as ServerSetup;
const majors = { "ai-v5": () => import("ai-v5"), "ai-v6": () => import("ai-v6"), "ai-v7": () => import("ai-v7") };
// What is used of it here is the same in all of them.
const sdk = (await majors[version]()) as unknown as typeof import("ai-v6");
const tp = createTwiceproof({ store: sqliteStore(file) });
/** How often the model was asked, by chat. */
const asked = new Map<string, number>();

const order = z.object({ orderId: z.string(), cents: z.number() });

function toolsFor({ approval = false }: Post) {
  return {
    charge: sdk.tool({
      description: "Charges an order.",
      inputSchema: order,
      needsApproval: approval,
      execute: async (input) => {
        const response = await fetch(`${payments}/charges`, { method: "POST", body: JSON.stringify(input) });
        return (await response.json()) as { id: string };
      },
    }),
    balance: sdk.tool({
      description: "How often an order was charged.",
      inputSchema: order.pick({ orderId: true }),
      execute: async ({ orderId }) => {
        const response = await fetch(`${payments}/charges?order=${orderId}`);
        return { charges: ((await response.json()) as unknown[]).length };
      },
    }),
  };
}

async function answer(run: ChatRun, post: Post): Promise<Response> {
  const tools = run.tools(
    toolsFor(post),
    { charge: "effect", balance: "read" },
    { charge: { leaseMs, waitMs: 20_000 } },
  );
  const messages = await run.repair(post.messages);
  const model = await scripted(version, post.script, () => asked.set(post.id, (asked.get(post.id) ?? 0) + 1));
  const stopWhen = sdk.stepCountIs(5);
  const result = sdk.streamText({
    model: model as Parameters<typeof sdk.streamText>[0]["model"],
    messages: await sdk.convertToModelMessages(messages as never),
    tools,
    maxRetries: 0,
    ...(post.loop === false ? { stopWhen } : run.loop({ stopWhen })),
    onError: () => undefined,
  });
  return result.toUIMessageStreamResponse({ originalMessages: messages as never, ...run.stream });
}

const server = createServer(async (request, response) => {
  const { pathname, searchParams } = new URL(request.url ?? "/", "http://localhost");
  if (pathname === "/asked") {
    response.end(JSON.stringify(asked.get(searchParams.get("chat") ?? "") ?? 0));
    return;
  }
  const post = (await json(request)) as Post;
  const { id: thread, lock = true } = post;
  const reply = await withRun(tp, { thread, lock, leaseMs }, (run) => answer(run, post));
  response.writeHead(reply.status, Object.fromEntries(reply.headers));
  // A client that leaves cancels the body, as it does in Next and Hono.
  if (reply.body === null) response.end();
  else await pipeline(Readable.fromWeb(reply.body as never), response).catch(() => undefined);
});
server.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}`));
