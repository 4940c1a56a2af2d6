import { AsyncLocalStorage } from "node:async_hooks";
import { type CallbackManager, ensureHandler } from "@langchain/core/callbacks/manager";
import type { BaseMessage } from "@langchain/core/messages";
import type { RunnableConfig } from "@langchain/core/runnables";
import { AsyncLocalStorageProviderSingleton } from "@langchain/core/singletons";
import { findTwiceproofError, TwiceproofError } from "@twiceproof/core";

/** A doubt as it left its tool. `exit` is the interrupt. */
interface Left {
  readonly callId: string | undefined;
  readonly error: TwiceproofError;
  readonly exit: unknown;
}

interface Noted extends Left {
  /** The ids of all tasks that the call is in. */
  readonly tasks: ReadonlySet<string>;
  /** Namespaces of the graphs in which one of them ended with something else. */
  readonly swallowedIn: Set<string>;
}

/** The doubts that left tools within a run, or within one tool call, by the call: others may swallow them on their way. */
interface Watch {
  readonly doubts: Map<string, Noted>;
  readonly outer: Watch | undefined;
  /** Around it. A run on a thread of its own has a namespace that does not name them. */
  readonly tasks: readonly string[];
}

const current = new AsyncLocalStorage<Watch>();

/** `left` undefined: the call is made anew. */
export function note(call: string, left?: Left): void {
  const tasks = new Set(tasksAround());
  const noted = left && { ...left, tasks, swallowedIn: new Set<string>() };
  for (let watch = current.getStore(); watch !== undefined; watch = watch.outer) {
    if (noted === undefined) watch.doubts.delete(call);
    else watch.doubts.set(call, noted);
    for (const task of watch.tasks) tasks.add(task);
  }
}

function makeWatch(): Watch {
  return { doubts: new Map(), outer: current.getStore(), tasks: tasksAround() };
}

/** By the namespace: `node:task|node:task`. */
function tasksAround(): readonly string[] {
  const around = AsyncLocalStorageProviderSingleton.getRunnableConfig() as RunnableConfig | undefined;
  const namespace: unknown = around?.configurable?.checkpoint_ns;
  return String(namespace ?? "")
    .split("|")
    .flatMap((part) => part.split(":").at(-1) || []);
}

/** What a task may save that is not through: LangGraph enters it again. */
const openChannels: readonly unknown[] = ["__interrupt__", "__resume__", "__error__"];

/**
 * Whether a task ends with something else than the doubt that left it: what others made of the doubt would be the tool's
 * answer for good.
 */
export function swallows(namespace: string, task: unknown, writes: unknown): boolean {
  if (!Array.isArray(writes) || writes.every(([channel]) => openChannels.includes(channel))) return false;
  const left = [...(current.getStore()?.doubts.values() ?? [])].filter(({ tasks }) => tasks.has(String(task)));
  for (const { swallowedIn } of left) swallowedIn.add(namespace);
  return left.length > 0;
}

/** The doubt in whose place this graph, or one within it, would go on with something else. */
export function swallowedIn(namespace: string): TwiceproofError | undefined {
  return swallowed(current.getStore(), (each) => `${each}|`.startsWith(namespace === "" ? "" : `${namespace}|`));
}

function swallowed(watch: Watch | undefined, isWithin: (namespace: string) => boolean): TwiceproofError | undefined {
  return [...(watch?.doubts.values() ?? [])].find((noted) => [...noted.swallowedIn].some(isWithin))?.error;
}

/** Runs a tool call, and leaves by its doubt whatever was made of it in between. */
export async function leavingByDoubt<Answer>(run: () => Answer | Promise<Answer>): Promise<Answer> {
  const watch = makeWatch();
  const left = (): Noted | undefined => [...watch.doubts.values()][0];
  try {
    const answer = await current.run(watch, async () => await run());
    if (left() === undefined) return answer;
  } catch (error) {
    if (left() === undefined) throw error;
  }
  throw left()?.exit;
}

export interface WatchedRun {
  readonly config: RunnableConfig;
  /**
   * Starts the run: what it does from here on is watched.
   *
   * @throws TwiceproofError `EFFECT_IN_DOUBT` when others swallowed a doubt on its way
   */
  readonly within: <T>(start: () => Promise<T>) => Promise<T>;
  /** @throws TwiceproofError `EFFECT_IN_DOUBT` when a call of the run is in doubt. Of several the others are in its `cause`. */
  readonly refuseDoubts: () => void;
}

/**
 * A run whose doubts are known, and in which no model is called with an answer that others gave for a tool in doubt, such
 * as a middleware that retries: the call of the model rejects with the doubt instead.
 */
export function watchRun(config: RunnableConfig): WatchedRun {
  const watch = makeWatch();
  const guard = ensureHandler({
    awaitHandlers: true,
    raiseError: true,
    handleChatModelStart(_model: unknown, given: readonly BaseMessage[][]) {
      const answered = new Set(given.flat().map((message) => (message as { tool_call_id?: string }).tool_call_id));
      for (const { callId, error } of watch.doubts.values())
        if (callId !== undefined && answered.has(callId)) throw error;
    },
  } as Parameters<typeof ensureHandler>[0]);
  return {
    config: { ...config, callbacks: withHandler(config.callbacks, guard) },
    async within(start) {
      const isAny = (): boolean => true;
      try {
        const result = await current.run(watch, start);
        const doubt = swallowed(watch, isAny);
        if (doubt !== undefined) throw doubt;
        return result;
      } catch (error) {
        throw findTwiceproofError(error, "RUN_LOST") ?? swallowed(watch, isAny) ?? error;
      }
    },
    refuseDoubts() {
      const [first, ...others] = [...watch.doubts.values()].map(({ error }) => error);
      if (first === undefined) return;
      if (others.length === 0) throw first;
      const { message, id = "", ref = "", help } = first;
      const cause = new AggregateError([first, ...others], "Several effects of this run are in doubt.");
      throw new TwiceproofError("EFFECT_IN_DOUBT", message, { id, ref, help, cause });
    },
  };
}

function withHandler(
  callbacks: RunnableConfig["callbacks"],
  handler: ReturnType<typeof ensureHandler>,
): NonNullable<RunnableConfig["callbacks"]> {
  if (callbacks === undefined || Array.isArray(callbacks)) return [...(callbacks ?? []), handler];
  const copy = (callbacks as CallbackManager).copy();
  copy.addHandler(handler, true);
  return copy;
}
