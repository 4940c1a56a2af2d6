import type { IncomingMessage, ServerResponse } from "node:http";
import { json } from "node:stream/consumers";
import { type AGUIEvent, EventType, type UserMessage } from "@ag-ui/core";
import { RunAgentInputSchema } from "@ag-ui/core/schemas";
import { EventEncoder } from "@ag-ui/encoder";
import { errorResponse, findTwiceproofError } from "@twiceproof/core";
import type { Agent } from "./agent.ts";
import type { Guard } from "./guards.ts";
import { messagesOf, takeTurn } from "./turn.ts";

export interface Route {
  readonly agent: Agent;
  readonly guard: Guard;
}

/** Answers a run of AG-UI: with an HTTP error as long as it has not got its thread, with a stream of events from then on. */
export async function answerRun(
  request: IncomingMessage,
  response: ServerResponse,
  { agent, guard }: Route,
): Promise<void> {
  const { data: input } = RunAgentInputSchema.safeParse(await json(request).catch(() => undefined));
  // The thread is what is stored: of the client's history only what is new counts.
  const question = input?.messages.findLast(({ role }) => role === "user") as UserMessage | undefined;
  if (input === undefined || question === undefined) return void response.writeHead(400).end();
  const { threadId: thread, runId } = input;
  const encoder = new EventEncoder();
  const gone = new AbortController();
  response.once("close", () => gone.abort());

  function send(event: AGUIEvent): void {
    response.write(encoder.encode(event));
  }

  function start(): void {
    response.writeHead(200, { "content-type": encoder.getContentType(), "cache-control": "no-store" });
    send({ type: EventType.RUN_STARTED, threadId: thread, runId });
  }

  try {
    const { checkpointId, cancelled } = await guard({ thread, runId, signal: gone.signal }, (signal, run) => {
      start();
      return takeTurn(agent, { thread, question, signal, run }, send);
    });
    // Only now: the turn is stored, by a write that was refused if another run had taken the thread, and it is on record.
    if (!response.headersSent) start(); // This run was over before: its client asks again, and is told the same.
    send({ type: EventType.MESSAGES_SNAPSHOT, messages: await messagesOf(agent, thread, checkpointId) });
    send({
      type: EventType.RUN_FINISHED,
      threadId: thread,
      runId,
      outcome: { type: cancelled ? "cancelled" : "success" },
    });
  } catch (error) {
    const ours = findTwiceproofError(error);
    if (ours === undefined && !gone.signal.aborted) console.error(error);
    if (!response.headersSent) return await sendError(response, error);
    // What the client was shown may be no part of the thread. AG-UI takes no snapshot after an error, so it comes before.
    const messages = await messagesOf(agent, thread).catch(() => undefined);
    if (messages !== undefined) send({ type: EventType.MESSAGES_SNAPSHOT, messages });
    send({ type: EventType.RUN_ERROR, message: ours?.message ?? "The run failed.", code: ours?.code ?? "FAILED" });
  }
  response.end();
}

/** The 409 of a busy thread is JSON: what AG-UI's client makes an object of. */
async function sendError(response: ServerResponse, error: unknown): Promise<void> {
  const refusal = errorResponse(error) ?? new Response(null, { status: 500 });
  response.writeHead(refusal.status, Object.fromEntries(refusal.headers)).end(await refusal.text());
}
