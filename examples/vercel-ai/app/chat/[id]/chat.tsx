"use client";

import { useChat } from "@ai-sdk/react";
import { DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses } from "ai";
import type { ChatMessage } from "../../../lib/tools.ts";

export function Chat({ id, saved }: { readonly id: string; readonly saved: readonly ChatMessage[] }) {
  const { messages, sendMessage, addToolApprovalResponse, status, error } = useChat<ChatMessage>({
    id,
    messages: [...saved],
    resume: true,
    // The answer to an approval goes on with the message that was saved.
    transport: new DefaultChatTransport({ resumeStreamIsReplay: false }),
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  });

  return (
    <main>
      {messages.map((message) => (
        <section key={message.id}>
          <b>{message.role}</b>
          {message.parts.map((part, index) => {
            if (part.type === "text") return <p key={index}>{part.text}</p>;
            if (part.type !== "tool-charge") return null;
            switch (part.state) {
              case "approval-requested":
                return (
                  <p key={part.toolCallId}>
                    Charge {part.input.cents / 100} for order {part.input.orderId}?{" "}
                    <button
                      type="button"
                      onClick={() => void addToolApprovalResponse({ id: part.approval.id, approved: true })}
                    >
                      Approve
                    </button>
                    <button
                      type="button"
                      onClick={() => void addToolApprovalResponse({ id: part.approval.id, approved: false })}
                    >
                      Deny
                    </button>
                  </p>
                );
              case "output-available":
                return <p key={part.toolCallId}>Receipt {part.output.id}</p>;
              case "output-error":
                return <p key={part.toolCallId}>{part.errorText}</p>;
              default:
                return <p key={part.toolCallId}>{part.state}</p>;
            }
          })}
        </section>
      ))}
      {error !== undefined && <p role="alert">{told(error)}</p>}
      <form action={(form) => void sendMessage({ text: String(form.get("text")) })}>
        <input name="text" size={50} defaultValue="Charge order A-17, 42 dollars" disabled={status !== "ready"} />
        <button type="submit" disabled={status !== "ready"}>
          Send
        </button>
      </form>
    </main>
  );
}

/** The error of a request that was refused has the whole answer as its text. */
function told({ message }: Error): string {
  try {
    return (JSON.parse(message) as { message: string }).message;
  } catch {
    return message;
  }
}
