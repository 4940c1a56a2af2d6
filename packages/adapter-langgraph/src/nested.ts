import { AsyncLocalStorageProviderSingleton } from "@langchain/core/singletons";
import { digest } from "@twiceproof/core/adapter";
import { runIdOf } from "./config.ts";
import type { RunConfig } from "./run-config.ts";

/** Called by a node or a tool of another graph, on that graph's thread: the run is that graph's. */
export function isNested(config: RunConfig | undefined): boolean {
  const outer = taskAround(config)?.configurable;
  if (outer === undefined) return false;
  const { thread_id = outer.thread_id } = config?.configurable ?? {};
  return String(thread_id) === String(outer.thread_id);
}

/** The node or tool in which a graph is called; as its config was handed on, where no surroundings are known. */
function taskAround(config: RunConfig | undefined): RunConfig | undefined {
  const around = AsyncLocalStorageProviderSingleton.getRunnableConfig() as RunConfig | undefined;
  return [around, config].find(isOfTask);
}

function isOfTask(config: RunConfig | undefined): boolean {
  return config?.configurable?.__pregel_task_id !== undefined;
}

/** The caller's own id of the run: one that came with the config of the run around it is that run's. */
export function ownRunId(config: RunConfig): string | undefined {
  const own = runIdOf(config);
  const around = taskAround(config);
  return around !== undefined && own === runIdOf(around) ? undefined : own;
}

/**
 * The id of a run that is called, without an id of its own, from within another on another thread: that run's, with what it
 * is asked and at which step. When the run around it is started again, this one goes on too; another step's is not taken for it.
 */
export function innerRunId(input: unknown, config: RunConfig): string | undefined {
  const around = taskAround(config);
  const outer = around && runIdOf(around);
  if (outer === undefined) return undefined;
  // Without the tasks' ids, which depend on the checkpoint: one that is lost is made again by another id.
  const asked = digest(tasksAround(config).replaceAll(/:[^|]*/g, ""), textOf(input)).slice(0, 32);
  return `${turnOfRun(outer)}/within-${asked}-${around?.metadata?.langgraph_step ?? ""}`;
}

/** Where the calls of a run count to: those of one that was called from within another, to what it was asked. */
export function turnOfRun(runId: string): string {
  return runId.replace(/(\/within-[0-9a-f]{32})-\d*$/, "$1");
}

/** The path of tasks in which a graph is called; empty outside of all. */
export function tasksAround(config: RunConfig): string {
  return String(taskAround(config)?.configurable?.checkpoint_ns ?? "");
}

function textOf(input: unknown): string {
  try {
    return JSON.stringify(input) ?? "";
  } catch {
    return "";
  }
}
