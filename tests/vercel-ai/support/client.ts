import { setTimeout as pause } from "node:timers/promises";
import type { Message, Post } from "./protocol.ts";

const withinMs = 60_000;

/** A chunk of the SDK's UI stream. */
interface Chunk {
  readonly type: string;
  readonly toolCallId?: string;
  readonly approvalId?: string;
  readonly input?: unknown;
  readonly output?: unknown;
  readonly errorText?: string;
}

export interface Reply {
  /** Of tools, in order. */
  readonly outputs: readonly unknown[];
  /** What the page is told went wrong. */
  readonly errors: readonly string[];
  readonly chunks: readonly Chunk[];
}

/** What a page does: while another run has the chat, it posts the same again. */
export async function post(
  server: string,
  body: Post,
  signal?: AbortSignal,
  heard?: (soFar: string) => void,
): Promise<Reply> {
  const start = performance.now();
  for (;;) {
    const response = await fetch(`${server}/api/chat`, {
      method: "POST",
      body: JSON.stringify(body),
      signal: signal ?? null,
    });
    if (response.status === 200) return read(await textOf(response, heard));
    if (response.status !== 409 || performance.now() - start > withinMs)
      throw new Error(`the server answered ${response.status}: ${await response.text()}`);
    await pause(100);
  }
}

async function textOf({ body }: Response, heard?: (soFar: string) => void): Promise<string> {
  let text = "";
  for await (const piece of body?.pipeThrough(new TextDecoderStream()) ?? []) {
    text += piece;
    heard?.(text);
  }
  return text;
}

/** What a page does whose run is told to stop; `stopping` resolves when that has reached the run. */
export function postUntilStopped(server: string, body: Post): { reply: Promise<Reply>; stopping: Promise<void> } {
  const { promise: stopping, resolve } = Promise.withResolvers<void>();
  const reply = post(server, body, undefined, (soFar) => {
    if (soFar.includes('"type":"abort"')) resolve();
  });
  return { reply, stopping };
}

function read(text: string): Reply {
  const lines = text.split("\n").filter((line) => line.startsWith("data: {"));
  const chunks = lines.map((line) => JSON.parse(line.slice("data: ".length)) as Chunk);
  return {
    chunks,
    outputs: chunks.filter(({ type }) => type === "tool-output-available").map(({ output }) => output),
    errors: chunks.flatMap(({ errorText }) => errorText ?? []),
  };
}

export function user(text: string, id = "message-1"): Message {
  return { id, role: "user", parts: [{ type: "text", text }] };
}

/** The assistant's message, with the charge that the user approved. */
export function approved({ chunks }: Reply): Message {
  const request = chunks.find(({ type }) => type === "tool-approval-request");
  const call = chunks.find(({ type }) => type === "tool-input-available");
  if (request === undefined || call === undefined) throw new Error("no approval was asked for");
  const { toolCallId, input } = call;
  const approval = { id: request.approvalId, approved: true };
  return {
    id: "message-2",
    role: "assistant",
    parts: [{ type: "step-start" }, { type: "tool-charge", toolCallId, state: "approval-responded", input, approval }],
  };
}
