import { describe, expect, it } from "vitest";
import {
  type Count,
  callerAborts,
  consumerBreaks,
  fatalSibling,
  nodeTimeout,
  retryPolicy,
  siblingInterrupts,
} from "./support/duplicates.ts";
import { type Runnable, type Scene, ways, withoutGuard } from "./support/graphs.ts";

type Duplicate = (build: (scene: Scene) => Runnable) => Promise<Count>;

/** `without`: the graphs in which LangGraph itself runs the effect again. */
const duplicates: readonly (readonly [string, Duplicate, readonly string[]])[] = [
  ["a sibling's interrupt", siblingInterrupts, ["createReactAgent", "a graph of one's own"]],
  ["a retry policy and a flaky sibling", retryPolicy, ["createReactAgent", "a graph of one's own"]],
  ["a fatal sibling, then a resume", fatalSibling, ["createReactAgent", "a graph of one's own"]],
  ["a time-out of the node, with retry", nodeTimeout, ["a graph of one's own"]],
  ["a consumer that leaves the stream, then a resume", consumerBreaks, ["createReactAgent", "a graph of one's own"]],
  ["a caller that aborts, then a resume", callerAborts, ["createReactAgent", "a graph of one's own"]],
];

describe.each(duplicates)("2: %s", (_, run, without) => {
  it.each(without)("runs the effect again in %s without a guard", async (name) => {
    const { charges, lastMessage } = await run(withoutGuard[name] ?? expect.fail(name));
    expect(charges).toBeGreaterThan(1);
    expect(lastMessage).toBe("done");
  });

  const here = Object.keys(ways).filter((name) => without.some((each) => name.startsWith(each)));
  it.each(here)("does not in %s", async (name) => {
    expect(await run(ways[name] ?? expect.fail(name))).toEqual({ charges: 1, lastMessage: "done" });
  });
});
