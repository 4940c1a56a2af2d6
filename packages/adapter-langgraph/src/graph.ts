import { type Twiceproof, TwiceproofError } from "@twiceproof/core";
import { guardOfCheckpointer } from "./guard-checkpointer.ts";
import type { AnyPregel, RunConfig } from "./run-config.ts";

/** A compiled graph, an agent of langchain's, or an entrypoint of the functional API. */
export interface Graph {
  invoke(input: unknown, config?: RunConfig): Promise<unknown>;
  stream(input: unknown, config?: RunConfig): Promise<AsyncIterable<unknown>>;
  streamEvents(input: unknown, config: RunConfig, ...rest: unknown[]): AsyncIterable<unknown> | Promise<unknown>;
  _streamIterator(input: unknown, config?: RunConfig): AsyncIterable<unknown>;
  updateState(config: RunConfig, ...rest: unknown[]): Promise<unknown>;
  bulkUpdateState(config: RunConfig, ...rest: unknown[]): Promise<unknown>;
  withConfig(config: unknown): Graph;
}

/** An agent of langchain's holds its graph. */
export function pregelOf(graph: object): AnyPregel {
  const inner = "lg_is_pregel" in graph ? graph : (graph as { graph?: unknown }).graph;
  if (typeof (inner as AnyPregel | undefined)?.getState !== "function")
    throw invalid("`guardGraph` takes a compiled graph, an agent of createAgent, or an entrypoint");
  return inner as AnyPregel;
}

export function checkCheckpointer(checkpointer: unknown, tp: Twiceproof): void {
  const guard = typeof checkpointer === "object" && checkpointer !== null && guardOfCheckpointer(checkpointer);
  if (!guard)
    throw invalid(
      "The graph's checkpointer is missing or is not guarded. Compile it with `checkpointer: guardCheckpointer(saver, { tp })`",
    );
  // Two of them may differ in their namespace, and then know nothing of each other's locks.
  if (guard !== tp)
    throw invalid("The graph and its checkpointer are guarded by two different `tp`: give both the same");
}

export function invalid(rule: string): TwiceproofError {
  return new TwiceproofError("INVALID_ARGUMENT", `${rule}.`);
}
