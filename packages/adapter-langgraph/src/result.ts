import { type BaseMessage, ToolMessage } from "@langchain/core/messages";
import { Command, isCommand } from "@langchain/langgraph";
import { commandFields, fieldsOf } from "./types.ts";

/** Stands in records in the place of the call's own id, which a later call does not share. */
const thisCall = "";

/**
 * A result without what belongs to one call of it: the id of the tool call, and the message's own, by which LangGraph
 * would put a replay in the place of the first answer. Messages that answer other calls stay as they are.
 */
export function detached(result: unknown, callId: string | undefined): unknown {
  return withMessages(result, (message, isResult) => {
    const answersThis = message.tool_call_id === callId || message.tool_call_id === thisCall;
    if (!answersThis && !isResult) return message;
    const { id: _, ...fields } = fieldsOf(message);
    return remade(fields, answersThis ? thisCall : message.tool_call_id);
  });
}

/** The result as the answer to the call that is made now. */
export function attached(result: unknown, callId: string | undefined): unknown {
  return withMessages(result, (message) =>
    message.tool_call_id === thisCall ? remade(fieldsOf(message), callId ?? thisCall) : message,
  );
}

function remade(fields: Record<string, unknown>, tool_call_id: string): ToolMessage {
  return new ToolMessage({ ...fields, tool_call_id } as ConstructorParameters<typeof ToolMessage>[0] & object);
}

type Change = (message: ToolMessage, isResult: boolean) => ToolMessage;

function withMessages(result: unknown, change: Change): unknown {
  if (isToolMessage(result)) return change(result, true);
  if (!isCommand(result)) return result;
  const fields = commandFields(result as Command);
  const { update } = fields;
  const changed = (value: unknown): unknown => (isToolMessage(value) ? change(value, false) : value);
  const inChannel = (value: unknown): unknown => (Array.isArray(value) ? value.map(changed) : changed(value));
  if (Array.isArray(update))
    return new Command({
      ...fields,
      update: update.map(([channel, value]): [string, unknown] => [channel, inChannel(value)]),
    });
  if (typeof update !== "object" || update === null) return result;
  const entries = Object.entries(update).map(([channel, value]) => [channel, inChannel(value)] as const);
  return new Command({ ...fields, update: Object.fromEntries(entries) });
}

function isToolMessage(value: unknown): value is ToolMessage {
  return ToolMessage.isInstance(value as BaseMessage);
}
