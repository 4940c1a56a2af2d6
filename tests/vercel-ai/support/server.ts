// An application on node:http, with one version of the SDK: `node server.ts <ServerSetup as JSON>`.
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { json } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import { type ChatRun, withRun } from "@twiceproof/adapter-vercel-ai";
import { createTwiceproof } from "@twiceproof/core";
import { sqliteStore } from "@twiceproof/store-sqlite";
import Database from "better-sqlite3";
import { z } from "zod";
import { keepStream, resumed } from "../../../examples/vercel-ai/lib/streams.ts";
import { scripted } from "./model.ts";
import type { Message, Post, ServerSetup } from "./protocol.ts";

const { version, file, payments, leaseMs } = JSON.parse(process.argv[2] ?? "") as ServerSetup;
const majors = { "ai-v5": () => import("ai-v5"), "ai-v6": () => import("ai-v6"), "ai-v7": () => import("ai-v7") };
// What is used of it here is the same in all of them.
const sdk = (await majors[version]()) as unknown as typeof import("ai-v6");
const database = new Database(file);
database.pragma("journal_mode = wal");
database.exec("create table if not exists chats (id text primary key, messages text not null)");
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
      execute: async (input, { abortSignal }) => {
        // A run that is told to stop does not break the charge off, which nobody could take back, but hurries it.
        const busy = `${payments}/busy?order=${input.orderId}`;
        abortSignal?.addEventListener("abort", () => void fetch(busy, { method: "PUT", body: "false" }));
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

function load(id: string): Message[] {
  const row = database.prepare<[string], { messages: string }>("select messages from chats where id = ?").get(id);
  return row === undefined ? [] : (JSON.parse(row.messages) as Message[]);
}

function save(id: string, messages: readonly object[]): void {
  const text = "insert into chats values (?, ?) on conflict (id) do update set messages = excluded.messages";
  database.prepare(text).run(id, JSON.stringify(messages));
}

async function answer(run: ChatRun, post: Post): Promise<Response> {
  const tools = run.tools(
    toolsFor(post),
    { charge: "effect", balance: "read" },
    { charge: { leaseMs, waitMs: 20_000 } },
  );
  const messages = await run.repair(post.load ? [...load(post.id), ...post.messages] : post.messages);
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
  return result.toUIMessageStreamResponse({
    originalMessages: messages as never,
    generateMessageId: () => crypto.randomUUID(),
    onFinish: (end) => save(post.id, end.messages),
    consumeSseStream: ({ stream }) => keepStream(post.id, stream),
    ...run.stream,
  });
}

const underWay = new Set<Promise<void>>();

function waitUntil(over: Promise<void>): void {
  underWay.add(over);
  void over.then(() => underWay.delete(over));
}

const server = createServer(async (request, response) => {
  const { pathname, searchParams } = new URL(request.url ?? "/", "http://localhost");
  if (pathname === "/asked") {
    response.end(JSON.stringify(asked.get(searchParams.get("chat") ?? "") ?? 0));
    return;
  }
  const [, watched] = /^\/api\/chat\/(.+)\/stream$/.exec(pathname) ?? [];
  const reply = watched === undefined ? await chat((await json(request)) as Post, response) : resumed(watched);
  response.writeHead(reply.status, Object.fromEntries(reply.headers));
  // A client that leaves cancels the body, as it does in Next and Hono.
  if (reply.body === null) response.end();
  else await pipeline(Readable.fromWeb(reply.body as never), response).catch(() => undefined);
});

async function chat(post: Post, client: ServerResponse): Promise<Response> {
  const { id: thread, lock = true, onBusy } = post;
  const waiting = new AbortController();
  // Who leaves while it waits leaves the line; once its run has begun, that goes on.
  const leave = (): void => waiting.abort();
  client.once("close", leave);
  try {
    const options = { thread, lock, leaseMs, onBusy, maxWaitMs: 60_000, signal: waiting.signal, waitUntil };
    return await withRun(tp, options, (run) => {
      client.off("close", leave);
      return answer(run, post);
    });
  } catch (error) {
    return new Response(String(error), { status: 500 });
  }
}

server.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}`));
process.once("SIGTERM", async () => {
  await Promise.all(underWay);
  process.exit(0);
});
