import { type AGUIEvent, contentToText, EventType, type Message, type UserMessage } from "@ag-ui/core";
import { AIMessage, AIMessageChunk, type BaseMessage, HumanMessage } from "@langchain/core/messages";
import { underRun } from "@twiceproof/adapter-langgraph";
import { isLost, type Run } from "@twiceproof/core";
import type { Agent } from "./agent.ts";
import type { Outcome } from "./guards.ts";

/** Stands in the thread where a run was stopped before it answered. */
export const stoppedText = "(stopped)";

export interface Turn {
  readonly thread: string;
  readonly question: UserMessage;
  readonly signal: AbortSignal;
  /** The run of Twiceproof that holds the thread. */
  readonly run: Run | undefined;
}

/** Takes a question to the agent, and tells of the answer as it comes. */
export async function takeTurn(
  agent: Agent,
  { thread, question: { id, content }, signal, run }: Turn,
  send: (event: AGUIEvent) => void,
): Promise<Outcome> {
  const config = { configurable: { thread_id: thread } };
  const place = run === undefined ? config : underRun(run, config);
  const question = new HumanMessage({ id, content: contentToText(content) });
  let cancelled = false;
  try {
    const options = { ...place, signal, streamMode: "messages", durability: "sync" } as const;
    await sendText(await agent.stream({ messages: [question] }, options), send);
  } catch (error) {
    if (!isCancelled(signal)) throw error;
    cancelled = true;
  }
  let state = await agent.getState(place);
  if (cancelled && !isAnswered(state.values.messages, id)) {
    // It still has its thread, and leaves no question without an answer.
    await agent.updateState(place, { messages: [question, new AIMessage(stoppedText)] }, "answer");
    state = await agent.getState(place);
  }
  return { checkpointId: state.config.configurable?.checkpoint_id, cancelled };
}

/** Asked to stop, or its client is gone; not: lost its thread. */
function isCancelled({ aborted, reason }: AbortSignal): boolean {
  return aborted && !isLost(reason);
}

function isAnswered(messages: readonly BaseMessage[] = [], questionId: string): boolean {
  return messages.some(({ id }, index) => id === questionId && index < messages.length - 1);
}

async function sendText(
  stream: AsyncIterable<readonly [BaseMessage, unknown]>,
  send: (event: AGUIEvent) => void,
): Promise<void> {
  let messageId: string | undefined;
  const end = (): void => {
    if (messageId !== undefined) send({ type: EventType.TEXT_MESSAGE_END, messageId });
  };
  try {
    for await (const [chunk] of stream) {
      if (!AIMessageChunk.isInstance(chunk) || chunk.text === "" || chunk.id === undefined) continue;
      if (chunk.id !== messageId) {
        end();
        messageId = chunk.id;
        send({ type: EventType.TEXT_MESSAGE_START, messageId, role: "assistant" });
      }
      send({ type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta: chunk.text });
    }
  } finally {
    end();
  }
}

/** What the store holds of a thread, now or at a checkpoint, as AG-UI shows it. */
export async function messagesOf(agent: Agent, thread: string, checkpointId?: string): Promise<Message[]> {
  const { values } = await agent.getState({
    configurable: { thread_id: thread, ...(checkpointId !== undefined && { checkpoint_id: checkpointId }) },
  });
  const messages: readonly BaseMessage[] = values.messages ?? [];
  return messages.map(({ id = "", type, text }) => ({
    id,
    role: type === "human" ? "user" : "assistant",
    content: text,
  }));
}
