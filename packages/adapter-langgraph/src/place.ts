import { setTimeout } from "node:timers/promises";
import type { BaseCheckpointSaver } from "@langchain/langgraph";
import { TwiceproofError } from "@twiceproof/core";
import { digest } from "@twiceproof/core/adapter";
import { outsideKey, runIdOf, type ToolConfig, toolCallIdOf, turnKey } from "./config.ts";
import { messagesIn } from "./messages.ts";
import { turnOfRun } from "./nested.ts";

export interface Place {
  readonly scope: string | undefined;
  readonly turn: string | undefined;
  readonly callId: string | undefined;
}

/**
 * Where a call happens. `turn` is the run, or else the human message that is being answered, or else the state that the
 * call hangs on. In a subgraph, or a sub-agent, the tasks around it are part of the turn: two of them that run side by
 * side make calls of their own.
 *
 * @throws TwiceproofError `IDENTITY_MISSING` without a thread; not when a business key makes the identity
 */
export async function placeOf(name: string, config: ToolConfig, hasKey: boolean): Promise<Place> {
  const { thread_id, checkpoint_ns = "" } = config.configurable ?? {};
  const callId = toolCallIdOf(config);
  if (thread_id === undefined || thread_id === null || thread_id === "") {
    if (hasKey) return { scope: undefined, turn: undefined, callId };
    throw missingThread(name);
  }
  const scope = String(thread_id);
  const runId = runIdOf(config);
  if (hasKey) return { scope, turn: runId && turnOfRun(runId), callId };
  const around = tasksWithin(checkpoint_ns, config.configurable?.[outsideKey]);
  const turn = (await turnOf(config, scope)) ?? stateOf(checkpoint_ns, callId);
  if (turn === undefined) throw missingThread(name);
  return { scope, turn: around === "" ? turn : `${turn}|${digest(around)}`, callId };
}

/** The tasks around this one, back to where its run begins. */
function tasksWithin(checkpointNs: string, outside: string | undefined): string {
  if (!outside) return checkpointNs.split("|").slice(0, -1).join("|");
  const own = checkpointNs.startsWith(`${outside}|`) ? checkpointNs.slice(outside.length + 1) : checkpointNs;
  // LangGraph counts the graphs that a task calls, also when it calls one again: here the turn tells them apart.
  const tasks = own.split("|").slice(0, -1);
  return tasks.filter((task) => task.includes(":")).join("|");
}

async function turnOf(config: ToolConfig, thread: string): Promise<string | undefined> {
  const runId = runIdOf(config);
  return runId === undefined ? humanMessageOf(config) : turnOfRun(await runOf(runId, config, thread));
}

async function runOf(runId: string, config: ToolConfig, thread: string): Promise<string> {
  const { [turnKey]: given, __pregel_checkpointer: saver } = config.configurable ?? {};
  if (given !== undefined || !saver) return given ?? runId;
  // A run that goes on from a checkpoint may have an id of its own: the turn is that of the run which brought the input.
  const owner = await runOfInput(saver, thread);
  if (owner === undefined || owner === runId) return runId;
  // Or this run's own input is not saved yet. Checkpoints are saved in order: once this step's is there, the input's is.
  return (await isSaved(saver, thread, config)) ? ((await runOfInput(saver, thread)) ?? runId) : runId;
}

/** The run whose input came last to a thread. */
export async function runOfInput(saver: BaseCheckpointSaver, thread: string): Promise<string | undefined> {
  const root = { configurable: { thread_id: thread, checkpoint_ns: "" } };
  for await (const { metadata } of saver.list(root, { filter: { source: "input" }, limit: 1 }))
    return metadata === undefined ? undefined : runIdOf({ metadata: { ...metadata } });
  return undefined;
}

const pollMs = 25;
const polls = 200;

/** Whether the checkpoint of the root graph's step is saved. Waits for it, five seconds at most. */
async function isSaved(saver: BaseCheckpointSaver, thread_id: string, config: ToolConfig): Promise<boolean> {
  const checkpoint_id = config.configurable?.checkpoint_map?.[""];
  if (checkpoint_id === undefined) return true;
  for (let poll = 0; poll < polls && config.durability !== "exit"; poll++) {
    if (await saver.getTuple({ configurable: { thread_id, checkpoint_ns: "", checkpoint_id } })) return true;
    await setTimeout(pollMs);
  }
  return false;
}

interface Message {
  readonly id?: string;
  readonly type?: string;
  readonly tool_calls?: readonly { readonly id?: string }[];
}

/** The message that stood last when the model asked for this call: one that came since belongs to a later turn. */
function humanMessageOf(config: ToolConfig): string | undefined {
  const state = config.state ?? config.configurable?.__pregel_scratchpad?.currentTaskInput;
  const messages = messagesIn(state) as readonly Message[];
  const callId = toolCallIdOf(config);
  const asked = messages.findLastIndex((message) => message?.tool_calls?.some(({ id }) => id === callId));
  const before = asked === -1 ? messages : messages.slice(0, asked);
  return before.findLast((message) => message?.type === "human")?.id;
}

/** Without the tool call's id only the task tells calls apart, and it changes when the model is asked again. */
function stateOf(checkpointNs: string, callId: string | undefined): string | undefined {
  if (checkpointNs === "") return undefined;
  const own = checkpointNs.split("|").at(-1) ?? "";
  return callId === undefined ? own : `${own.split(":")[0]}:${callId}`;
}

function missingThread(name: string): TwiceproofError {
  return new TwiceproofError(
    "IDENTITY_MISSING",
    `Nothing says which "${name}" this is: it was called without a thread and has no key. Nothing was executed.`,
    {
      help: [
        "Give one of these:",
        '  a thread at the call of the graph:  graph.invoke(input, { configurable: { thread_id: "…" } })',
        '  a business key in the tool\'s rules:  key: (input) => "charge:" + input.orderId',
      ].join("\n"),
    },
  );
}
