import { DefaultChatTransport, readUIMessageStream } from "ai";
import type { ChatMessage } from "./lib/tools.ts";

/** What a tab of a browser does, without the browser: sends the chat as it knows it, and reads the reply to its end. */
export async function send(server: string, id: string, messages: readonly ChatMessage[]): Promise<ChatMessage[]> {
  const transport = new DefaultChatTransport<ChatMessage>({ api: `${server}/api/chat` });
  const stream = await transport.sendMessages({
    trigger: "submit-message",
    chatId: id,
    messageId: undefined,
    abortSignal: undefined,
    messages: [...messages],
  });
  const last = messages.at(-1);
  const going = last?.role === "assistant" ? structuredClone(last) : undefined;
  let reply: ChatMessage | undefined;
  for await (const state of readUIMessageStream<ChatMessage>({
    stream,
    ...(going && { message: going }),
    terminateOnError: true,
  }))
    reply = state;
  if (reply === undefined) throw new Error("The reply was empty.");
  return [...(going ? messages.slice(0, -1) : messages), reply];
}

/** The chat after a press on Approve. */
export function approve(messages: readonly ChatMessage[]): ChatMessage[] {
  return messages.map((message) => ({
    ...message,
    parts: message.parts.map((part) =>
      part.type === "tool-charge" && part.state === "approval-requested"
        ? { ...part, state: "approval-responded", approval: { ...part.approval, approved: true } }
        : part,
    ),
  }));
}

/** The receipt that the tab shows. */
export function receipt(messages: readonly ChatMessage[]): string | undefined {
  const parts = messages.flatMap((message) => message.parts);
  return parts.find((part) => part.type === "tool-charge" && part.state === "output-available")?.output.id;
}
