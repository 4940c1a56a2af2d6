import type { Twiceproof } from "@twiceproof/core";
import { checkOptions } from "@twiceproof/core/adapter";
import { settleResumed } from "./doubt.ts";
import { toolsIn } from "./find-tool.ts";
import { checkCheckpointer, type Graph, invalid, pregelOf } from "./graph.ts";
import { isNested } from "./nested.ts";
import { checkTp } from "./rules.ts";
import { completeConfig, givenRunId, type RunConfig, startOf, threadOf } from "./run-config.ts";
import { endingWith, type GraphEvents } from "./run-events.ts";
import { outerRunOf, type RunMark, withMark } from "./run-mark.ts";
import { runStream } from "./run-stream.ts";
import { type LockOptions, lockOptionNames, onThread } from "./thread-run.ts";
import { watchRun } from "./watch.ts";

/** Beside how a run takes its thread. */
export interface GuardGraphOptions extends LockOptions {
  readonly tp: Twiceproof;
  /**
   * What a run does that stops at a doubt. `throw` (default): rejects with `EFFECT_IN_DOUBT`, so that nobody takes it for
   * finished. `stop`: returns with `__interrupt__`, for callers that show interrupts to people.
   */
  readonly inDoubt?: "throw" | "stop" | undefined;
}

const optionNames: Record<keyof GuardGraphOptions, true> = { tp: true, inDoubt: true, ...lockOptionNames };

/**
 * The graph, started by `invoke`, `stream`, `streamEvents` and `batch` as a run with an id that holds its thread, alone on
 * all machines, from before it reads the thread's state until nothing of it can be saved any more. Its checkpoints are saved
 * before the next step begins. Edits of the state take the thread too, and are refused while it is held. Within another
 * graph, on that graph's thread, it is the plain graph.
 *
 * @throws TwiceproofError `INVALID_ARGUMENT`, also for a graph whose checkpointer is not guarded; at its calls what
 * `tp.withRun` throws, before anything was read or written, `RUN_LOST`, `RUN_CANCELLED`, and `EFFECT_IN_DOUBT`
 */
export function guardGraph<G extends object>(graph: G, options: GuardGraphOptions): G {
  checkOptions("guardGraph", options ?? {}, optionNames);
  checkTp(options?.tp);
  const { tp, inDoubt = "throw", ...lock } = options;
  if (inDoubt !== "throw" && inDoubt !== "stop") throw invalid('`inDoubt` must be "throw" or "stop"');
  const pregel = pregelOf(graph ?? {});
  const target = graph as unknown as Graph;
  checkCheckpointer(pregel.checkpointer, tp);
  const find = toolsIn(graph, pregel);

  /** All ways into a run come through here. */
  async function run<Result>(
    input: unknown,
    given: RunConfig | undefined,
    start: (input: unknown, config: RunConfig) => Promise<Result>,
  ): Promise<Result> {
    const config = completeConfig(pregel, given ?? {});
    const thread = threadOf(pregel, config);
    // LangGraph says itself what a checkpointer needs.
    if (thread === undefined) return await start(input, config);
    const { signal } = config;
    const options = { ...lock, thread, runId: givenRunId(input, config), signal };
    const body = async (mark: RunMark): Promise<Result> => {
      const decided = await settleResumed(tp, input, thread);
      const held = withMark({ ...config, signal: AbortSignal.any([mark.run.signal, mark.lost.signal]) }, mark);
      const started = await startOf(pregel, find, decided, held, mark.run.runId);
      const { config: watched, within, refuseDoubts } = watchRun(started.config);
      const result = await within(() => start(started.input, watched));
      if (inDoubt === "throw") refuseDoubts();
      return result;
    };
    return await onThread(tp, options, body, outerRunOf(config));
  }

  function streamed(
    input: unknown,
    given: RunConfig | undefined,
    start: (input: unknown, config: RunConfig) => Promise<AsyncIterable<unknown>> | AsyncIterable<unknown>,
  ) {
    return runStream(given, (config, { admit, push }) =>
      run(input, config, async (own, prepared) => {
        admit();
        for await (const chunk of await start(own, prepared)) if (!push(chunk)) return;
      }),
    );
  }

  /** Events of version 3 are an object that lives as long as its run. */
  async function eventsOf(input: unknown, config: RunConfig, rest: unknown[]): Promise<unknown> {
    const opened = Promise.withResolvers<GraphEvents>();
    const over = run(input, config, async (own, prepared) => {
      const events = (await target.streamEvents(own, prepared, ...rest)) as GraphEvents;
      opened.resolve(events);
      return await events.output;
    });
    over.catch(opened.reject);
    return endingWith(await opened.promise, over);
  }

  /** Also when runs wait or interrupt: an edit was made for the state that its author saw. */
  async function edit(config: RunConfig, act: (config: RunConfig) => Promise<unknown>): Promise<unknown> {
    const thread = threadOf(pregel, config ?? {});
    if (thread === undefined || isNested(config)) return await act(config);
    const { signal } = config;
    const options = { thread, signal, leaseMs: lock.leaseMs };
    return await onThread(tp, options, (mark) => act(withMark(config, mark)), outerRunOf(config));
  }

  const entries: Graph = {
    async invoke(input, config) {
      if (isNested(config)) return await target.invoke(input, config);
      return await run(input, config, (own, prepared) => target.invoke(own, prepared));
    },
    async stream(input, config) {
      if (isNested(config)) return await target.stream(input, config);
      const { stream, admitted } = streamed(input, config, (own, prepared) => target.stream(own, prepared));
      await admitted;
      return stream;
    },
    streamEvents(input, config, ...rest) {
      if (isNested(config)) return target.streamEvents(input, config, ...rest);
      const start = (own: unknown, prepared: RunConfig) =>
        target.streamEvents(own, prepared, ...rest) as AsyncIterable<unknown>;
      if (config?.version !== "v3") return streamed(input, config, start).stream;
      if (inDoubt === "throw")
        throw invalid(
          '`streamEvents` of version "v3" shows interrupts itself: guard the graph with `inDoubt: "stop"` for it',
        );
      if (config.encoding === undefined) return eventsOf(input, config, rest);
      const { stream, admitted } = streamed(input, config, start);
      return admitted.then(() => stream);
    },
    /** How a sequence that streams calls the graphs in it. */
    async *_streamIterator(input, config) {
      yield* await entries.stream(input, config);
    },
    updateState: (config, ...rest) => edit(config, (own) => target.updateState(own, ...rest)),
    bulkUpdateState: (config, ...rest) => edit(config, (own) => target.bulkUpdateState(own, ...rest)),
    withConfig: (config) => guardGraph(target.withConfig(config), options),
  };

  const isAgent = (pregel as unknown) !== graph;
  const guarded: G = new Proxy(graph, {
    get(_, name) {
      if (Object.hasOwn(entries, name) && name in graph) return entries[name as keyof Graph];
      // An agent has private fields, which a proxy has not. What else a graph does goes through the entries above.
      const value: unknown = Reflect.get(graph, name, isAgent ? graph : guarded);
      return isAgent && typeof value === "function" && name !== "constructor" ? value.bind(graph) : value;
    },
  });
  return guarded;
}
