import { describe, expect, it } from "vitest";
import { agentsWithoutGuard, agentWays } from "../support/agents.ts";
import {
  type Count,
  callerAborts,
  consumerBreaks,
  fatalSibling,
  retryPolicy,
  siblingInterrupts,
} from "../support/duplicates.ts";
import type { Runnable, Scene } from "../support/graphs.ts";

type Duplicate = (build: (scene: Scene) => Runnable) => Promise<Count>;

/** `without`: the agents in which the framework itself runs the effect again. */
const duplicates: readonly (readonly [string, Duplicate, readonly string[]])[] = [
  ["a sibling's interrupt", siblingInterrupts, ["createAgent v1"]],
  ["a retry policy and a flaky sibling", retryPolicy, []],
  ["a fatal sibling, then a resume", fatalSibling, ["createAgent", "createAgent v1"]],
  ["a consumer that leaves the stream, then a resume", consumerBreaks, ["createAgent", "createAgent v1"]],
  ["a caller that aborts, then a resume", callerAborts, ["createAgent", "createAgent v1"]],
];

describe.each(duplicates)("2: %s", (_, run, without) => {
  it.each(without)("runs the effect again in %s without a guard", async (name) => {
    const { charges, lastMessage } = await run(agentsWithoutGuard[name] ?? expect.fail(name));
    expect(charges).toBeGreaterThan(1);
    expect(lastMessage).toBe("done");
  });

  it.each(Object.keys(agentWays))("does not in %s", async (name) => {
    expect(await run(agentWays[name] ?? expect.fail(name))).toEqual({ charges: 1, lastMessage: "done" });
  });
});
