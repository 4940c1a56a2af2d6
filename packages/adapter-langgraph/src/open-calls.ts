import { ToolMessage } from "@langchain/core/messages";
import { isCommand, type StateSnapshot } from "@langchain/langgraph";
import { noResult } from "./call.ts";
import { turnKey } from "./config.ts";
import type { FindTool } from "./find-tool.ts";
import { messagesIn } from "./messages.ts";
import type { AnyPregel, RunConfig } from "./run-config.ts";

interface OpenCall {
  readonly id: string;
  readonly name: string;
  readonly args: Record<string, unknown>;
}

interface Message {
  readonly type?: string;
  readonly tool_call_id?: string;
  readonly tool_calls?: readonly OpenCall[];
}

/**
 * The input of a new run, and before it what became of the tool calls that the run before left without an answer: it was
 * killed, lost, cancelled, or stopped at a doubt or a question. Models refuse a history with such calls, or make them again.
 * What is on record of each is its answer; no tool is run, and nothing is awaited.
 */
export async function withAnswers(
  graph: AnyPregel,
  state: StateSnapshot,
  input: unknown,
  config: RunConfig,
  find: FindTool,
): Promise<unknown> {
  if (state.tasks.length === 0 || !isFields(input)) return input;
  // As the new run will find it: by its id a checkpoint is read without what its tasks have written since.
  const { values } = await graph.getState(state.config);
  const calls = openCalls(messagesIn(values) as readonly Message[]);
  if (calls.length === 0) return input;
  const answers = await Promise.all(calls.map((call) => answerTo(call, graph, config, find)));
  return { ...input, messages: [...answers, ...messagesIn(input)] };
}

function isFields(input: unknown): input is Record<string, unknown> {
  return typeof input === "object" && input !== null && !Array.isArray(input) && !isCommand(input);
}

/** Of the last message of the model's, when nothing but answers to it came since. */
function openCalls(messages: readonly Message[]): readonly OpenCall[] {
  const asked = messages.findLastIndex(({ type }) => type === "ai");
  const since = messages.slice(asked + 1);
  if (asked === -1 || since.some(({ type }) => type !== "tool")) return [];
  const answered = new Set(since.map(({ tool_call_id }) => tool_call_id));
  return (messages[asked]?.tool_calls ?? []).filter(({ id }) => Boolean(id) && !answered.has(id));
}

async function answerTo(call: OpenCall, graph: AnyPregel, config: RunConfig, find: FindTool): Promise<ToolMessage> {
  const { id, name, args } = call;
  const tool = find(name);
  if (tool === undefined) return toolError(call, noResult(name));
  const place = {
    ...config.configurable,
    checkpoint_ns: "",
    // Looked up, by the checkpoint: that of the run which made the call.
    [turnKey]: undefined,
    checkpoint_map: undefined,
    __pregel_checkpointer: graph.checkpointer,
    __twiceproof_record_only: true,
  };
  try {
    const toolCall = { id, name, args, type: "tool_call" as const };
    const result = await tool.invoke(toolCall as never, { configurable: place } as never);
    return messageOf(result, id) ?? toolError(call, `"${name}" was done. Do not do it again.`);
  } catch (error) {
    // What its schema makes of it: such a call never reaches the tool.
    return toolError(call, error instanceof Error ? error.message : String(error));
  }
}

function toolError({ id, name }: OpenCall, content: string): ToolMessage {
  return new ToolMessage({ status: "error", content, name, tool_call_id: id });
}

/** Of a command, which would have changed more of the state than its messages, that which answers this call. */
function messageOf(result: unknown, id: string): ToolMessage | undefined {
  const found = isCommand(result) ? messagesIn(Object.fromEntries(Object.entries(result.update ?? {}))) : [result];
  return found.find(
    (each): each is ToolMessage => ToolMessage.isInstance(each as never) && (each as ToolMessage).tool_call_id === id,
  );
}
