import type { RunnableConfig } from "@langchain/core/runnables";
import { type BaseCheckpointSaver, isCommand, type StateSnapshot } from "@langchain/langgraph";
import { TwiceproofError } from "@twiceproof/core";
import { outsideKey, runIdOf, turnKey } from "./config.ts";
import type { FindTool } from "./find-tool.ts";
import { messagesIn } from "./messages.ts";
import { innerRunId, ownRunId, tasksAround, turnOfRun } from "./nested.ts";
import { withAnswers } from "./open-calls.ts";
import { runOfInput } from "./place.ts";

/** A graph, whatever its state is made of. */
export interface AnyPregel {
  readonly checkpointer?: BaseCheckpointSaver | boolean | undefined;
  readonly config?: RunnableConfig | undefined;
  readonly nodes?: Readonly<Record<string, unknown>> | undefined;
  getState(config: RunnableConfig): Promise<StateSnapshot>;
}

export interface RunConfig extends RunnableConfig {
  readonly durability?: "sync" | "async" | "exit";
  readonly checkpointDuring?: boolean;
  readonly version?: string;
  readonly encoding?: string;
}

/**
 * What the caller says about the run that it starts: the id, or that of the message that it brings; else what traces call
 * it, which is another with each attempt.
 */
export function givenRunId(input: unknown, config: RunConfig): string | undefined {
  return namedRunId(input, config) ?? config.runId;
}

function namedRunId(input: unknown, config: RunConfig): string | undefined {
  return ownRunId(config) ?? (isResume(input) ? undefined : humanMessageIdOf(input));
}

export function threadOf(graph: AnyPregel, config: RunConfig): string | undefined {
  const thread: unknown = config.configurable?.thread_id ?? graph.config?.configurable?.thread_id;
  return thread === undefined || thread === null || thread === "" ? undefined : String(thread);
}

/**
 * A call's config over the graph's own: some versions of LangGraph put the one in the place of the other. A run is saved
 * before its next step begins, unless its caller said otherwise.
 *
 * @throws TwiceproofError `INVALID_ARGUMENT`
 */
export function completeConfig(graph: AnyPregel, config: RunConfig): RunConfig {
  const { durability, checkpointDuring } = config;
  if (durability === "exit" || checkpointDuring === false)
    throw new TwiceproofError(
      "INVALID_ARGUMENT",
      'With `durability: "exit"` nothing is saved before the run ends, and a worker that dies leaves nothing to go on from. Use "sync" or "async".',
    );
  return {
    ...config,
    ...(durability === undefined && checkpointDuring === undefined && { durability: "sync" as const }),
    configurable: { ...graph.config?.configurable, ...config.configurable },
    metadata: { ...graph.config?.metadata, ...config.metadata },
  };
}

export interface Start {
  readonly input: unknown;
  readonly config: RunConfig;
}

/**
 * What a run is started with: an id, where LangGraph and its savers look for it. It is the caller's; else that of the run
 * which is resumed; else the human message's own; else one by the run around it; else `newId`. And, for a thread whose last
 * run left tool calls without an answer, their answers.
 */
export async function startOf(
  graph: AnyPregel,
  find: FindTool,
  input: unknown,
  config: RunConfig,
  newId: string,
): Promise<Start> {
  const { configurable, metadata } = config;
  const given = namedRunId(input, config);
  const state =
    threadOf(graph, config) === undefined || (given !== undefined && isResume(input))
      ? undefined
      : await graph.getState({ configurable: { ...configurable } });
  const last = state?.metadata && runIdOf({ metadata: { ...state.metadata } });
  const known = given ?? (isResume(input) ? last : innerRunId(input, config));
  const run_id = known ?? newId;
  // What a resume goes on with is the turn of whoever brought it: looked up where it matters.
  const turn = isResume(input) ? {} : { [turnKey]: turnOfRun(run_id) };
  const started = {
    ...config,
    metadata: { ...metadata, run_id },
    configurable: { ...configurable, run_id, [outsideKey]: tasksAround(config), ...turn },
  };
  // LangGraph goes on with a run of the same id, and looks at no input.
  if (isResume(input) || state === undefined || run_id === last) return { config: started, input };
  // Or somebody has resumed it under another id since, or has edited the state: it is still the turn of its input.
  const { checkpointer } = graph;
  const mayGoOn = known !== undefined && !configurable?.checkpoint_id && typeof checkpointer === "object";
  if (mayGoOn && (await runOfInput(checkpointer, String(configurable?.thread_id))) === known)
    return { config: started, input: null };
  return { config: started, input: await withAnswers(graph, state, input, started, find) };
}

function isResume(input: unknown): boolean {
  return (
    input === null || input === undefined || (isCommand(input) && input.resume !== undefined && input.resume !== null)
  );
}

/** Set by the caller: those that LangGraph draws come later. */
function humanMessageIdOf(input: unknown): string | undefined {
  const messages = messagesIn(input) as readonly Partial<Record<"id" | "type" | "role", unknown>>[];
  const human = messages.findLast((message) => ["human", "user"].includes(String(message?.type ?? message?.role)));
  return typeof human?.id === "string" && human.id !== "" ? human.id : undefined;
}
