import { AsyncLocalStorageProviderSingleton } from "@langchain/core/singletons";
import { type Twiceproof, TwiceproofError } from "@twiceproof/core";
import { checkOptions } from "@twiceproof/core/adapter";
import { settleResumed } from "./doubt.ts";
import { isGuardedCheckpointer } from "./guard-checkpointer.ts";
import { checkTp } from "./rules.ts";
import { type AnyPregel, type RunConfig, runConfig } from "./run-config.ts";
import { runStream } from "./run-stream.ts";
import { type WatchedRun, watchRun } from "./watch.ts";

export interface GuardGraphOptions {
  readonly tp: Twiceproof;
  /**
   * What a run does that stops at a doubt. `throw` (default): rejects with `EFFECT_IN_DOUBT`, so that nobody takes it for
   * finished. `stop`: returns with `__interrupt__`, for callers that show interrupts to people.
   */
  readonly inDoubt?: "throw" | "stop" | undefined;
}

/** A compiled graph, an agent of langchain's, or an entrypoint of the functional API. */
interface Graph {
  invoke(input: unknown, config?: RunConfig): Promise<unknown>;
  stream(input: unknown, config?: RunConfig): Promise<AsyncIterable<unknown>>;
  streamEvents(input: unknown, config: RunConfig, ...rest: unknown[]): AsyncIterable<unknown> | Promise<unknown>;
  withConfig(config: unknown): Graph;
}

const optionNames: Record<keyof GuardGraphOptions, true> = { tp: true, inDoubt: true };

/**
 * The graph, started by `invoke`, `stream`, `streamEvents` and `batch` as a run with an id, whose checkpoints are saved
 * before the next step begins. Within another graph it is the plain graph.
 *
 * @throws TwiceproofError `INVALID_ARGUMENT`, also for a graph whose checkpointer is not guarded; at its calls
 * `EFFECT_IN_DOUBT`
 */
export function guardGraph<G extends object>(graph: G, options: GuardGraphOptions): G {
  checkOptions("guardGraph", options ?? {}, optionNames);
  checkTp(options?.tp);
  const { inDoubt = "throw" } = options;
  if (inDoubt !== "throw" && inDoubt !== "stop") throw invalid('`inDoubt` must be "throw" or "stop"');
  const pregel = pregelOf(graph ?? {});
  const target = graph as unknown as Graph;
  checkCheckpointer(pregel.checkpointer);

  /** All ways into a run come through here. */
  async function run(input: unknown, config: RunConfig | undefined): Promise<WatchedRun> {
    const prepared = await runConfig(pregel, input, config);
    await settleResumed(options.tp, input, prepared.configurable?.thread_id);
    return watchRun(prepared);
  }

  async function* streamed(
    input: unknown,
    given: RunConfig,
    start: (config: RunConfig) => Promise<AsyncIterable<unknown>> | AsyncIterable<unknown>,
  ): AsyncGenerator {
    const { config, within, refuseDoubts } = await run(input, given);
    yield* await within(() => start(config));
    if (inDoubt === "throw") refuseDoubts();
  }

  const entries: Entries = {
    async invoke(input, given) {
      if (isNested(given)) return await target.invoke(input, given);
      const { config, within, refuseDoubts } = await run(input, given);
      const result = await within(() => target.invoke(input, config));
      if (inDoubt === "throw") refuseDoubts();
      return result;
    },
    async stream(input, config) {
      if (isNested(config)) return await target.stream(input, config);
      return runStream(config, (own) => streamed(input, own, (prepared) => target.stream(input, prepared)));
    },
    streamEvents(input, config, ...rest) {
      if (isNested(config)) return target.streamEvents(input, config, ...rest);
      const start = (prepared: RunConfig) => target.streamEvents(input, prepared, ...rest) as AsyncIterable<unknown>;
      if (config?.version !== "v3") return runStream(config, (own) => streamed(input, own, start));
      if (inDoubt === "throw")
        throw invalid(
          '`streamEvents` of version "v3" shows interrupts itself: guard the graph with `inDoubt: "stop"` for it',
        );
      return run(input, config).then((run) => run.within(() => start(run.config)));
    },
    withConfig: (config) => guardGraph(target.withConfig(config), options),
  };

  const isAgent = (pregel as unknown) !== graph;
  const guarded: G = new Proxy(graph, {
    get(_, name) {
      if (Object.hasOwn(entries, name)) return entries[name as keyof Entries];
      // An agent has private fields, which a proxy has not. What else a graph does goes through the entries above.
      const value: unknown = Reflect.get(graph, name, isAgent ? graph : guarded);
      return isAgent && typeof value === "function" && name !== "constructor" ? value.bind(graph) : value;
    },
  });
  return guarded;
}

type Entries = Pick<Graph, "invoke" | "stream" | "streamEvents" | "withConfig">;

/** An agent of langchain's holds its graph. */
function pregelOf(graph: object): AnyPregel {
  const inner = "lg_is_pregel" in graph ? graph : (graph as { graph?: unknown }).graph;
  if (typeof (inner as AnyPregel | undefined)?.getState !== "function")
    throw invalid("`guardGraph` takes a compiled graph, an agent of createAgent, or an entrypoint");
  return inner as AnyPregel;
}

function checkCheckpointer(checkpointer: unknown): void {
  if (typeof checkpointer === "object" && checkpointer !== null && isGuardedCheckpointer(checkpointer)) return;
  throw new TwiceproofError(
    "INVALID_ARGUMENT",
    "The graph's checkpointer is missing or is not guarded. Compile it with `checkpointer: guardCheckpointer(saver, { tp })`.",
  );
}

/** Called by a node or a tool of another graph: the run is that graph's. */
function isNested(config: RunConfig | undefined): boolean {
  const around = AsyncLocalStorageProviderSingleton.getRunnableConfig() as RunConfig | undefined;
  return [config, around].some((each) => each?.configurable?.__pregel_task_id !== undefined);
}

function invalid(rule: string): TwiceproofError {
  return new TwiceproofError("INVALID_ARGUMENT", `${rule}.`);
}
