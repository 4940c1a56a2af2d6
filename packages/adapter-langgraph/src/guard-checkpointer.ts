import { setTimeout as pause } from "node:timers/promises";
import type { RunnableConfig } from "@langchain/core/runnables";
import type { BaseCheckpointSaver, CheckpointMetadata } from "@langchain/langgraph";
import { type ClaimRef, isLost, type Twiceproof, TwiceproofError } from "@twiceproof/core";
import { checkOptions } from "@twiceproof/core/adapter";
import { runIdOf } from "./config.ts";
import { type FenceKind, fenceOf, overtaken } from "./fence.ts";
import { forwarding } from "./forwarding.ts";
import { checkTp } from "./rules.ts";
import { markOf, withMark } from "./run-mark.ts";
import { onThread, refuseWhileHeld } from "./thread-run.ts";
import { uniqueVersions } from "./versions.ts";
import { swallowedIn, swallows } from "./watch.ts";

export interface GuardCheckpointerOptions {
  readonly tp: Twiceproof;
}

export interface GuardedCheckpointer {
  /**
   * How a run that lost its thread is kept from writing. `exact` for a PostgresSaver or a SqliteSaver on the database of
   * the claims: inside the transaction that writes. `detects` for all others: asked before and after, so that a write by a
   * holder that stood still in between may land, and its run is told. Takes a lock of its own to find out.
   */
  fence(): Promise<FenceKind>;
}

const handledMs = 20;

const guarded = new WeakMap<object, Twiceproof>();

/** What this checkpointer was guarded with; undefined when it was not. */
export function guardOfCheckpointer(saver: object): Twiceproof | undefined {
  return guarded.get(saver);
}

/**
 * The saver, and it refuses what is not to be written: by a run that lost its thread, and by anything else while a run
 * holds it. Every checkpoint says which run made it; by that LangGraph knows an input that is sent again with the id of its
 * run, and goes on from the last checkpoint where it would start anew.
 *
 * @throws TwiceproofError `INVALID_ARGUMENT`; at its writes `RUN_LOST`, `THREAD_BUSY`
 */
export function guardCheckpointer<Saver extends BaseCheckpointSaver>(
  saver: Saver,
  options: GuardCheckpointerOptions,
): Saver & GuardedCheckpointer {
  checkOptions("guardCheckpointer", options ?? {}, { tp: true });
  const { tp } = options ?? {};
  checkTp(tp);
  if (typeof saver?.put !== "function")
    throw new TwiceproofError("INVALID_ARGUMENT", "`guardCheckpointer` takes a checkpointer, such as a MemorySaver.");
  if (guarded.has(saver)) throw new TwiceproofError("INVALID_ARGUMENT", "This checkpointer is guarded already.");
  const fence = fenceOf(saver, tp.store);

  async function write<T>(config: RunnableConfig, act: (saver: Saver) => Promise<T>): Promise<T> {
    const thread: unknown = config?.configurable?.thread_id;
    // The saver says itself what it needs.
    if (thread === undefined || thread === null || thread === "") return await act(saver);
    const mark = markOf(config, tp.store, thread);
    if (mark === undefined) {
      await refuseWhileHeld(tp, String(thread));
      return await act(saver);
    }
    const { run, writes, lost, over } = mark;
    if (over || run.fence === null) throw overtaken();
    const written = lost.signal.aborted ? Promise.reject(lost.signal.reason) : fence.write(run.fence, act);
    writes.add(written);
    try {
      return await written;
    } catch (error) {
      if (!isLost(error) && !lost.signal.aborted) throw error;
      lost.abort(error);
      // LangGraph 1.4 looks at what became of a save when its loop is over, which the abort sees to: a promise that rejects
      // any sooner has nobody who handles it, and Node then ends the process.
      await pause(handledMs);
      throw error;
    } finally {
      writes.delete(written);
    }
  }

  const methods = {
    put: (config: RunnableConfig, checkpoint: never, metadata: CheckpointMetadata, ...rest: never[]) => {
      const doubt = swallowedIn(namespaceOf(config));
      if (doubt !== undefined) markOf(config, tp.store, config.configurable?.thread_id)?.lost.abort(doubt);
      const run_id = runIdOf(config);
      const stamped = run_id === undefined ? metadata : { ...metadata, run_id };
      return write(config, (target) => target.put(config, checkpoint, stamped, ...(rest as [never])));
    },
    async putWrites(config: RunnableConfig, ...rest: never[]) {
      const [writes, task] = rest;
      // Not refused here: that would call off the tasks beside it. The step's own checkpoint is.
      if (swallows(namespaceOf(config), task, writes)) return;
      await write(config, (target) => target.putWrites(config, ...(rest as [never, never])));
    },
    deleteThread: (thread: string) =>
      onThread(tp, { thread: String(thread) }, (mark) =>
        write(withMark({ configurable: { thread_id: thread } }, mark), (target) => target.deleteThread(thread)),
      ),
    getNextVersion: uniqueVersions(saver),
    fence: () =>
      onThread(tp, { thread: "twiceproof/fence", onBusy: "wait" }, ({ run }) => fence.kind(run.fence as ClaimRef)),
  };
  const proxy = forwarding(saver as Saver & GuardedCheckpointer, methods as never);
  guarded.set(proxy, tp);
  return proxy;
}

function namespaceOf({ configurable }: RunnableConfig): string {
  return String(configurable?.checkpoint_ns ?? "");
}
