import { randomUUID } from "node:crypto";
import type { RunnableConfig } from "@langchain/core/runnables";
import { type BaseCheckpointSaver, isCommand, type StateSnapshot } from "@langchain/langgraph";
import { TwiceproofError } from "@twiceproof/core";
import { runIdOf } from "./config.ts";

/** A graph, whatever its state is made of. */
export interface AnyPregel {
  readonly checkpointer?: BaseCheckpointSaver | boolean | undefined;
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
  const run_id = runIdOf(config) ?? config.runId ?? (await ownRunId(graph, input, config)) ?? randomUUID();
  return {
    ...config,
    ...(durability === undefined && checkpointDuring === undefined && { durability: "sync" as const }),
    metadata: { ...config.metadata, run_id },
    configurable: { ...config.configurable, run_id },
  };
}

async function ownRunId(graph: AnyPregel, input: unknown, config: RunConfig): Promise<string | undefined> {
  const resumes = input === null || input === undefined || (isCommand(input) && input.resume !== undefined);
  if (!resumes) return humanMessageIdOf(input);
  if (config.configurable?.thread_id === undefined) return undefined;
  const { metadata } = await graph.getState({ configurable: config.configurable });
  return metadata === undefined ? undefined : runIdOf({ metadata: { ...metadata } });
}

/** Set by the caller: those that LangGraph draws come later. */
function humanMessageIdOf(input: unknown): string | undefined {
  const given: unknown = Array.isArray(input) ? input : (input as { messages?: unknown } | undefined)?.messages;
  const messages: readonly Partial<Record<"id" | "type" | "role", unknown>>[] = Array.isArray(given) ? given : [given];
  const human = messages.findLast((message) => ["human", "user"].includes(String(message?.type ?? message?.role)));
  return typeof human?.id === "string" && human.id !== "" ? human.id : undefined;
}
