import { AsyncLocalStorageProviderSingleton } from "@langchain/core/singletons";
import type { RunConfig } from "./run-config.ts";

/** Called by a node or a tool of another graph, on that graph's thread: the run is that graph's. */
export function isNested(config: RunConfig | undefined): boolean {
  const around = AsyncLocalStorageProviderSingleton.getRunnableConfig() as RunConfig | undefined;
  const outer = [config, around].find((each) => each?.configurable?.__pregel_task_id !== undefined)?.configurable;
  if (outer === undefined) return false;
  const { thread_id = outer.thread_id } = config?.configurable ?? {};
  return String(thread_id) === String(outer.thread_id);
}
