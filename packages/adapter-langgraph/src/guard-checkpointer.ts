import type { RunnableConfig } from "@langchain/core/runnables";
import type { BaseCheckpointSaver, CheckpointMetadata } from "@langchain/langgraph";
import { type Twiceproof, TwiceproofError } from "@twiceproof/core";
import { checkOptions } from "@twiceproof/core/adapter";
import { runIdOf } from "./config.ts";
import { checkTp } from "./rules.ts";

export interface GuardCheckpointerOptions {
  readonly tp: Twiceproof;
}

const guarded = new WeakSet<object>();

export function isGuardedCheckpointer(saver: object): boolean {
  return guarded.has(saver);
}

/**
 * The saver, and every checkpoint that it saves says which run made it. By that LangGraph knows an input that is sent again
 * with the id of its run, and goes on from the last checkpoint where it would start anew.
 *
 * @throws TwiceproofError `INVALID_ARGUMENT`
 */
export function guardCheckpointer<Saver extends BaseCheckpointSaver>(
  saver: Saver,
  options: GuardCheckpointerOptions,
): Saver {
  checkOptions("guardCheckpointer", options ?? {}, { tp: true });
  checkTp(options?.tp);
  if (typeof saver?.put !== "function")
    throw new TwiceproofError("INVALID_ARGUMENT", "`guardCheckpointer` takes a checkpointer, such as a MemorySaver.");

  async function put(
    config: RunnableConfig,
    checkpoint: Parameters<Saver["put"]>[1],
    metadata: CheckpointMetadata,
    ...rest: unknown[]
  ): Promise<RunnableConfig> {
    const run_id = runIdOf(config);
    const stamped = run_id === undefined ? metadata : { ...metadata, run_id };
    return await saver.put(config, checkpoint, stamped, ...(rest as [never]));
  }

  const proxy = new Proxy(saver, {
    get(target, name) {
      if (name === "put") return put;
      const value: unknown = Reflect.get(target, name);
      // On the saver itself: some keep private fields, which a proxy has not.
      return typeof value === "function" && name !== "constructor" ? value.bind(target) : value;
    },
  });
  guarded.add(proxy);
  return proxy;
}
