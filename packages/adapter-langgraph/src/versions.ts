import type { BaseCheckpointSaver } from "@langchain/langgraph";

type Version = number | string;

/**
 * Versions of channels that no other run draws as well. LangGraph counts 1, 2, 3, so that two histories of one thread, such
 * as two runs at once or a run from an earlier checkpoint, give the same number to different values; a saver that keeps
 * values by their number then shows one under the checkpoint of the other. Threads that counted so far go on.
 */
export function uniqueVersions(saver: BaseCheckpointSaver): (current: Version | undefined) => Version {
  return (current) => {
    const next: Version = saver.getNextVersion(current as never);
    // A saver of one's own that draws texts has its own order.
    return typeof next === "number" ? Math.floor(Number(current ?? 0)) + 1 + Math.random() : next;
  };
}
