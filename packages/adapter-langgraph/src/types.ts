import { Document } from "@langchain/core/documents";
import {
  AIMessage,
  type BaseMessage,
  ChatMessage,
  FunctionMessage,
  HumanMessage,
  isBaseMessage,
  RemoveMessage,
  SystemMessage,
  ToolMessage,
} from "@langchain/core/messages";
import { Command, isCommand, Send } from "@langchain/langgraph";
import type { CodecType } from "@twiceproof/core";

/** Messages come as classes of more than one copy of the package: told by their brand, and made anew with the peer's own. */
const messageClasses: Readonly<Record<string, new (fields: never) => BaseMessage>> = {
  ai: AIMessage,
  function: FunctionMessage,
  generic: ChatMessage,
  human: HumanMessage,
  remove: RemoveMessage,
  system: SystemMessage,
  tool: ToolMessage,
};

const messageFields = [
  "content",
  "name",
  "id",
  "additional_kwargs",
  "response_metadata",
  "tool_call_id",
  "status",
  "artifact",
  "metadata",
  "tool_calls",
  "invalid_tool_calls",
  "usage_metadata",
  "role",
] as const;

interface MessageForm {
  readonly type: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

const message: CodecType = {
  name: "langchain/Message",
  test: (value) => isBaseMessage(value) && Object.hasOwn(messageClasses, value.type),
  reduce: (value) =>
    ({ type: (value as BaseMessage).type, fields: fieldsOf(value as BaseMessage) }) satisfies MessageForm,
  revive(form) {
    const { type, fields } = form as MessageForm;
    const Message = messageClasses[type];
    if (Message === undefined) throw new TypeError("a message of an unknown type");
    return new Message(fields as never);
  },
};

/** What a message is made of, for its constructor. */
export function fieldsOf(value: BaseMessage): Record<string, unknown> {
  const given = messageFields.map((name) => [name, (value as unknown as Record<string, unknown>)[name]] as const);
  return Object.fromEntries(given.filter(([, field]) => field !== undefined));
}

interface CommandForm {
  readonly graph?: string;
  readonly update?: Record<string, unknown> | [string, unknown][];
  readonly resume?: unknown;
  readonly goto?: string | Send | (string | Send)[];
}

const command: CodecType = {
  name: "langgraph/Command",
  test: (value) => isCommand(value),
  reduce: (value) => commandFields(value as Command),
  revive: (form) => new Command(form as CommandForm),
};

export function commandFields({ graph, update, resume, goto }: Command): CommandForm {
  return Object.fromEntries(
    Object.entries({ graph, update, resume, goto }).filter(([, field]) => field !== undefined),
  ) as CommandForm;
}

interface SendForm {
  readonly node: string;
  readonly args: unknown;
  readonly timeout?: unknown;
}

const send: CodecType = {
  name: "langgraph/Send",
  test: (value) => (value as { lg_name?: unknown }).lg_name === "Send" && "node" in value && "args" in value,
  reduce(value) {
    const { node, args, timeout } = value as SendForm;
    return { node, args, ...(timeout !== undefined && { timeout }) };
  },
  revive(form) {
    const { node, args, timeout } = form as SendForm;
    return new Send(node, args, ...((timeout === undefined ? [] : [{ timeout }]) as []));
  },
};

const document: CodecType = {
  name: "langchain/Document",
  test: (value) =>
    Object.getPrototypeOf(value)?.constructor?.name === "Document" && "pageContent" in value && "metadata" in value,
  reduce(value) {
    const { pageContent, metadata, id } = value as Document;
    return { pageContent, metadata, ...(id !== undefined && { id }) };
  },
  revive: (form) => new Document(form as Pick<Document, "pageContent" | "metadata">),
};

/** What results of tools may contain beside what core keeps. One list, so that core makes one codec of it. */
export const langgraphTypes: readonly CodecType[] = [message, command, send, document];
