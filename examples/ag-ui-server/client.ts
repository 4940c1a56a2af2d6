import { randomUUID } from "node:crypto";
import { type AgentStateMutation, HttpAgent, type Message } from "@ag-ui/client";

/** What a client was told of its run, in the end. */
export interface Told {
  readonly question: string;
  readonly outcome: "finished" | "cancelled" | "refused" | "failed";
  /** Of a refusal or a failure. */
  readonly code: string | undefined;
  /** The closing snapshot. */
  readonly snapshot: readonly Message[];
  /** When it was told of the start. 0: never. */
  readonly startedAt: number;
}

/** Nothing in this play takes so long. A run that is given up is one that failed. */
const patienceMs = 60_000;

export interface AskOptions {
  readonly runId?: string;
  /** Called with the first piece of the answer. */
  readonly onText?: () => void;
}

/** Sends one message with AG-UI's own client. */
export async function ask(url: string, thread: string, question: string, options: AskOptions = {}): Promise<Told> {
  const { runId = randomUUID(), onText } = options;
  const agent = new HttpAgent({
    url,
    threadId: thread,
    initialMessages: [{ id: randomUUID(), role: "user", content: question }],
  });
  const abortController = new AbortController();
  const patience = setTimeout(() => abortController.abort(), patienceMs);
  let told: Told = { question, outcome: "failed", code: undefined, snapshot: [], startedAt: 0 };
  await agent.runAgent(
    { runId, abortController },
    {
      onRunStartedEvent() {
        told = { ...told, startedAt: performance.now() };
      },
      onTextMessageContentEvent: () => onText?.(),
      onMessagesSnapshotEvent({ event }) {
        told = { ...told, snapshot: event.messages };
      },
      onRunFinishedEvent({ outcome }) {
        told = { ...told, outcome: outcome === "cancelled" ? "cancelled" : "finished" };
      },
      onRunErrorEvent({ event }) {
        told = { ...told, code: event.code };
      },
      onRunFailed({ error }) {
        const { status, payload } = error as { status?: number; payload?: { code?: string } };
        if (status === 409) told = { ...told, outcome: "refused", code: payload?.code };
        return status === 409 ? handled : undefined;
      },
    },
  );
  clearTimeout(patience);
  return told;
}

/** The client prints what nobody has handled, and rejects. */
const handled: AgentStateMutation = { stopPropagation: true };
