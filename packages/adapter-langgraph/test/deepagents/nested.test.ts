import { MemorySaver } from "@langchain/langgraph";
import { createDeepAgent } from "deepagents";
import { describe, expect, it } from "vitest";
import { guardMiddleware, type ToolRules } from "../../src/index.ts";
import { wishing } from "../support/model.ts";
import { charging, type Here, here, human, losesAndGoesOn, saver, whole } from "../support/nested.ts";

it("2: a doubt within a deep agent's sub-agent", async () => {
  const at = here();
  const build = () => whole(at, deepAgent(at, [{ description: "charge", subagent_type: "clerk" }]));
  await losesAndGoesOn(at, build);
});

/** Its sub-agent charges; the main agent's tools are guarded by the middleware. */
function deepAgent(
  at: Here,
  tasks: readonly Record<string, unknown>[],
  task: "read" | "effect" = "read",
  rules: ToolRules = {},
) {
  const kinds = (name: string) => (name === "task" ? task : "read");
  return createDeepAgent({
    model: wishing(...tasks.map((args) => ({ name: "task", args }))),
    middleware: [guardMiddleware({ tp: at.tp, kinds })] as never,
    subagents: [
      {
        name: "clerk",
        description: "charges",
        systemPrompt: "charge",
        tools: [charging(at, rules)] as never,
        model: wishing({ name: "charge", args: { n: 1 } }),
      },
    ],
    checkpointer: saver(at),
  });
}

describe("sub-agents side by side", () => {
  const tasks = ["ana", "bob"].map((description) => ({ description, subagent_type: "clerk" }));

  it.each([{}, { identity: "call" }] as ToolRules[])("make calls of their own (%o)", async (rules) => {
    const at = here();
    const build = () => whole(at, deepAgent(at, tasks, "read", rules));
    await build().invoke(human, { configurable: { thread_id: "thread", run_id: "run" } });
    expect(at.bodies).toEqual([1, 1]);
    await build().invoke(human, { configurable: { thread_id: "thread", run_id: "run" } });
    expect(at.bodies).toEqual([1, 1]);
  });

  it("2: a sub-agent that is an effect as a whole runs once for a run that is sent again", async () => {
    const at = here();
    for (let time = 0; time < 2; time++) {
      // Nothing of the first time is left but its claims.
      const build = whole(at, deepAgent({ ...at, saver: new MemorySaver() }, tasks.slice(0, 1), "effect"));
      const { messages } = await build.invoke(human, { configurable: { thread_id: "thread", run_id: "run" } });
      expect(messages.at(-1)?.content).toBe("done");
    }
    expect(at.bodies).toEqual([1]);
  });
});
