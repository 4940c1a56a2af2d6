import type { RunnableConfig } from "@langchain/core/runnables";
import type { BaseCheckpointSaver } from "@langchain/langgraph";

/** Where `guardGraph` says which turn a run is of. The underscores keep it out of traces. */
export const turnKey = "__twiceproof_turn";

/** Where it says in which tasks of another run this one was called: they are no part of it. */
export const outsideKey = "__twiceproof_outside";

/** What LangGraph keeps for one task while it runs. Read, and put back, by `doubt.ts` alone. */
interface Scratchpad {
  interruptCounter: number;
  readonly resume: unknown[];
  nullResume?: unknown;
  readonly consumeNullResume?: () => unknown;
  readonly currentTaskInput?: unknown;
}

/** The parts of a tool's second argument that this package reads. All of them may be missing. */
export interface ToolConfig extends RunnableConfig {
  readonly toolCall?: { readonly id?: string };
  readonly toolCallId?: string;
  readonly state?: unknown;
  readonly durability?: string;
  readonly configurable?: RunnableConfig["configurable"] & {
    readonly thread_id?: unknown;
    readonly run_id?: unknown;
    readonly checkpoint_ns?: string;
    readonly checkpoint_map?: Readonly<Record<string, string>>;
    readonly [turnKey]?: string;
    readonly [outsideKey]?: string;
    readonly __pregel_checkpointer?: BaseCheckpointSaver;
    readonly __pregel_scratchpad?: Scratchpad;
    /** Ours: the call is to be answered from the record, and not made. */
    readonly __twiceproof_record_only?: boolean;
  };
}

/** The model's own id of this call. Undefined when the tool was called by other code than a tool node, or without one. */
export function toolCallIdOf(config: ToolConfig): string | undefined {
  return config.toolCall?.id || config.toolCallId || undefined;
}

/** Where a run id is looked for: the platform and `guardGraph` put it into both. */
export function runIdOf(config: Pick<RunnableConfig, "configurable" | "metadata">): string | undefined {
  const id: unknown = config.configurable?.run_id ?? config.metadata?.run_id;
  return id === undefined || id === null || id === "" ? undefined : String(id);
}
