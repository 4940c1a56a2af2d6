import type { CallbackManagerForToolRun } from "@langchain/core/callbacks/manager";
import { AsyncLocalStorageProviderSingleton } from "@langchain/core/singletons";
import type { StructuredToolInterface } from "@langchain/core/tools";
import { type Twiceproof, TwiceproofError } from "@twiceproof/core";
import { type Body, callOnce } from "./call.ts";
import type { ToolConfig } from "./config.ts";
import { checkToolRules, type Guard, makeGuard, type ToolRules } from "./rules.ts";

/** Any tool of LangChain's: made by `tool()`, or an instance of a class of one's own. */
export type AnyTool = Pick<StructuredToolInterface, "name" | "description" | "lc_namespace"> & {
  readonly invoke: (input: never, config?: never) => Promise<unknown>;
};

/** What a tool's function takes, after its schema, and what it gives; unknown for tools that are classes. */
export type InputOf<T> = T extends { func: (input: infer Input, ...rest: never[]) => unknown } ? Input : unknown;
export type ResultOf<T> = T extends { func: (...args: never[]) => infer Result } ? Awaited<Result> : unknown;

export type GuardToolOptions<T> = ToolRules<InputOf<T>, ResultOf<T>> & {
  readonly tp: Twiceproof;
};

type Call = (input: unknown, runManager?: CallbackManagerForToolRun, config?: ToolConfig) => unknown;

interface Callable {
  readonly _call: Call;
  readonly func?: unknown;
}

/** Of each guarded tool, so that no call is claimed twice. */
const guarded = new WeakSet<object>();

export function isGuarded(tool: object): boolean {
  return guarded.has(tool);
}

/**
 * A copy of the tool whose calls are claimed and recorded. The claim is held until the tool's own function is through,
 * also when the run was called off or timed out long before.
 *
 * @throws TwiceproofError `INVALID_ARGUMENT`
 */
export function guardTool<T extends AnyTool>(tool: T, options: GuardToolOptions<T>): T {
  const { tp, ...rules } = options ?? {};
  checkToolRules("guardTool", options ?? {}, { tp: true });
  if (typeof (tool as unknown as Partial<Callable> | undefined)?._call !== "function")
    throw invalid(
      "`guardTool` takes a tool made by `tool()`, or an instance of a class that extends StructuredTool. What a model's provider runs by itself cannot be guarded",
    );
  if (isGuarded(tool)) throw invalid(`The tool "${tool.name}" is guarded already`);
  const guard = makeGuard(tp, tool.name, rules);
  if (guard.rules.kind === "read") return tool;
  const original = tool as unknown as Callable;
  return withCalls(
    tool,
    guard,
    (runManager, config) =>
      async (input, { signal }) =>
        drained(await unraced(original, input, runManager, config, signal), runManager),
  );
}

/** A copy, so that the tool itself may go on unguarded elsewhere. */
export function withCalls<T extends object>(
  tool: T,
  guard: Guard,
  bodyOf: (runManager: CallbackManagerForToolRun | undefined, config: ToolConfig) => Body,
): T {
  const _call: Call = async (input, runManager, config = {}) =>
    asOutput(tool, await callOnce(guard, input, config, bodyOf(runManager, config)));
  const copy = Object.create(Object.getPrototypeOf(tool), {
    ...Object.getOwnPropertyDescriptors(tool),
    _call: { value: _call, configurable: true, enumerable: false, writable: true },
  });
  guarded.add(copy);
  return copy;
}

/**
 * `tool()` races the user's function with the signal in its config, and gives up while the function goes on. So it gets
 * none, and the function gets this one from the context that LangChain fills in missing parts of a config from.
 */
function unraced(
  tool: Callable,
  input: unknown,
  runManager: CallbackManagerForToolRun | undefined,
  config: ToolConfig,
  signal: AbortSignal,
): unknown {
  if (tool.func === undefined) return tool._call(input, runManager, { ...config, signal });
  const { signal: _, ...rest } = config;
  const around = AsyncLocalStorageProviderSingleton.getRunnableConfig() ?? {};
  return AsyncLocalStorageProviderSingleton.runWithConfig({ ...around, signal }, () =>
    tool._call(input, runManager, rest),
  );
}

/** A generator has done nothing when it is returned. Its values are passed on as LangChain would; its return is the result. */
async function drained(result: unknown, runManager: CallbackManagerForToolRun | undefined): Promise<unknown> {
  if (!isAsyncGenerator(result)) return result;
  for (;;) {
    const { done, value } = await result.next();
    if (done) return value;
    await runManager?.handleToolEvent(value);
  }
}

function isAsyncGenerator(value: unknown): value is AsyncGenerator {
  return typeof value === "object" && value !== null && Symbol.asyncIterator in value && "next" in value;
}

/** A verdict's result, or a text in the place of one, need not be the pair that such a tool has to give. */
function asOutput({ responseFormat }: { readonly responseFormat?: string }, result: unknown): unknown {
  const isPair = Array.isArray(result) && result.length === 2;
  return responseFormat === "content_and_artifact" && !isPair ? [result, undefined] : result;
}

function invalid(rule: string): TwiceproofError {
  return new TwiceproofError("INVALID_ARGUMENT", `${rule}.`);
}
