import { AsyncLocalStorageProviderSingleton } from "@langchain/core/singletons";
import type { Run, Store, Twiceproof } from "@twiceproof/core";
import type { RunConfig } from "./run-config.ts";

/** A run that holds its thread, as it travels with LangGraph's config: to tools, and to the checkpointer. */
export interface RunMark {
  readonly tp: Twiceproof;
  readonly run: Run;
  /** Aborts when a write was refused: the loop must not go on to its end with what it cannot save. */
  readonly lost: AbortController;
  /** Set when the run's answer is given: what is left of its loop writes nothing more. */
  over: boolean;
  /** Checkpointer calls under way. */
  readonly writes: Set<Promise<unknown>>;
}

/** With two underscores LangChain keeps it out of metadata and traces. */
const name = "__twiceproof_run";

export function withMark<C extends RunConfig>(config: C, mark: RunMark): C {
  // Not enumerable: whoever writes a config into a log must not meet what lives behind `tp`.
  const carrier = Object.defineProperty({}, "mark", { value: mark });
  return { ...config, configurable: { ...config.configurable, [name]: carrier } };
}

const outerName = "__twiceproof_outer_run";

/**
 * A config by which a graph of `guardGraph` works under a run that you hold, on that run's thread, where it would start one
 * of its own: for what is to happen before and after it under the same lock, and for a run whose outcome is remembered. Also
 * for `updateState`. The graph's `tp` must be the run's.
 */
export function underRun<C extends Carried>(run: Run, config: C): C {
  const carrier = Object.defineProperty({}, "run", { value: run });
  return { ...config, configurable: { ...config.configurable, [outerName]: carrier } };
}

/** What `underRun` put into it. */
export function outerRunOf(config: Carried | undefined): Run | undefined {
  return (config?.configurable?.[outerName] as { readonly run?: Run } | undefined)?.run;
}

interface Carried {
  readonly configurable?: Readonly<Record<string, unknown>> | undefined;
}

/** The run that holds this very thread, by the config, or else by that of the node around this call. */
export function markOf(config: Carried | undefined, store: Store, thread: unknown): RunMark | undefined {
  const around = AsyncLocalStorageProviderSingleton.getRunnableConfig() as Carried | undefined;
  for (const each of [config, around]) {
    const mark = (each?.configurable?.[name] as { readonly mark?: RunMark } | undefined)?.mark;
    if (mark !== undefined && mark.tp.store === store && mark.run.thread === String(thread)) return mark;
  }
  return undefined;
}

/** Where the effects of a tool are claimed: under the run that holds the thread, when it is one of this very `tp`. */
export function claimantOf(
  config: Carried | undefined,
  tp: Twiceproof,
  thread: unknown,
): Pick<Run, "once" | "recorded"> {
  const mark = markOf(config, tp.store, thread);
  return mark?.tp === tp ? mark.run : tp;
}
