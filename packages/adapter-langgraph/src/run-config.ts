import { randomUUID } from "node:crypto";
import type { RunnableConfig } from "@langchain/core/runnables";
import { type BaseCheckpointSaver, isCommand, type StateSnapshot } from "@langchain/langgraph";
import { TwiceproofError } from "@twiceproof/core";
import { runIdOf, turnKey } from "./config.ts";

/** A graph, whatever its state is made of. */
export interface AnyPregel {
  readonly checkpointer?: BaseCheckpointSaver | boolean | undefined;
  readonly config?: RunnableConfig;
  getState(config: RunnableConfig): Promise<StateSnapshot>;
}

export interface RunConfig extends RunnableConfig {
  readonly durability?: "sync" | "async" | "exit";
  readonly checkpointDuring?: boolean;
  readonly version?: string;
}

/**
 * What a run is started with: an id, where LangGraph and its savers look for it, and checkpoints that are saved before
 * the next step. The id is the caller's; else that of the run which is resumed; else the human message's own; else new.
 *
 * @throws TwiceproofError `INVALID_ARGUMENT`
 */
export async function runConfig(graph: AnyPregel, input: unknown, config: RunConfig = {}): Promise<RunConfig> {
  const { durability, checkpointDuring } = config;
  if (durability === "exit" || checkpointDuring === false)
    throw new TwiceproofError(
      "INVALID_ARGUMENT",
      'With `durability: "exit"` nothing is saved before the run ends, and a worker that dies leaves nothing to go on from. Use "sync" or "async".',
    );
  // Some versions of LangGraph put a call's `configurable` in the place of the graph's own.
  const configurable = { ...graph.config?.configurable, ...config.configurable };
  const metadata = { ...graph.config?.metadata, ...config.metadata };
  const given = runIdOf({ configurable, metadata }) ?? config.runId;
  const run_id = given ?? (await ownRunId(graph, input, configurable)) ?? randomUUID();
  // What a resume goes on with is the turn of whoever brought it: looked up where it matters.
  const turn = isResume(input) ? {} : { [turnKey]: run_id };
  return {
    ...config,
    ...(durability === undefined && checkpointDuring === undefined && { durability: "sync" as const }),
    metadata: { ...metadata, run_id },
    configurable: { ...configurable, run_id, ...turn },
  };
}

function isResume(input: unknown): boolean {
  return (
    input === null || input === undefined || (isCommand(input) && input.resume !== undefined && input.resume !== null)
  );
}

async function ownRunId(
  graph: AnyPregel,
  input: unknown,
  configurable: NonNullable<RunConfig["configurable"]>,
): Promise<string | undefined> {
  if (!isResume(input)) return humanMessageIdOf(input);
  if (configurable.thread_id === undefined) return undefined;
  const { metadata } = await graph.getState({ configurable });
  return metadata === undefined ? undefined : runIdOf({ metadata: { ...metadata } });
}

/** Set by the caller: those that LangGraph draws come later. */
function humanMessageIdOf(input: unknown): string | undefined {
  const given: unknown = Array.isArray(input) ? input : (input as { messages?: unknown } | undefined)?.messages;
  const messages: readonly Partial<Record<"id" | "type" | "role", unknown>>[] = Array.isArray(given) ? given : [given];
  const human = messages.findLast((message) => ["human", "user"].includes(String(message?.type ?? message?.role)));
  return typeof human?.id === "string" && human.id !== "" ? human.id : undefined;
}
