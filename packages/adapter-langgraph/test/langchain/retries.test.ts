import { MemorySaver } from "@langchain/langgraph";
import { createTwiceproof, done, findTwiceproofError, memoryStore, refused, unknown } from "@twiceproof/core";
import { toolRetryMiddleware } from "langchain";
import { describe, expect, it } from "vitest";
import { agent, agentOf, type Middleware, middleware } from "../support/agents.ts";
import { byEffectTool, type Runnable, type Scene, unguarded } from "../support/graphs.ts";
import { wishing } from "../support/model.ts";
import { rejection } from "../support/waiting.ts";

const human = { messages: [{ role: "user", content: "go" }] };
const config = { configurable: { thread_id: "thread" } };
const retries = toolRetryMiddleware({ maxRetries: 2, initialDelayMs: 1, jitter: false });

function scene(): Scene & { readonly count: () => number } {
  let count = 0;
  return {
    tp: createTwiceproof({ store: memoryStore() }),
    model: wishing({ name: "charge", args: { n: 0 } }),
    saver: new MemorySaver(),
    charge() {
      count++;
      throw new Error("lost");
    },
    count: () => count,
  };
}

const builds: Readonly<Record<string, (scene: Scene, list: readonly Middleware[]) => Runnable>> = {
  "guardMiddleware outside": (scene, list) => agent(scene, unguarded(scene), [middleware(scene), ...list]),
  "guardMiddleware inside": (scene, list) => agent(scene, unguarded(scene), [...list, middleware(scene)]),
  "effectTool, and so inside": (scene, list) => agent(scene, byEffectTool(scene), list),
};

describe("a middleware that retries tools", () => {
  it("runs the effect again without a guard", async () => {
    const here = scene();
    await agentOf(here, unguarded(here), [retries]).invoke(human, config);
    expect(here.count()).toBe(3);
  });

  it.each(Object.entries(builds))("2: does not with %s, and no model hears of it", async (_, build) => {
    const here = scene();
    const error = await rejection(build(here, [retries]).invoke(human, config));
    expect(findTwiceproofError(error, "EFFECT_IN_DOUBT")).toBeDefined();
    expect(here.count()).toBe(1);
    expect(here.model.given).toHaveLength(1);
  });

  it.each(Object.entries(builds))("2: leaves the step open with %s", async (_, build) => {
    const here = scene();
    const job = { configurable: { ...config.configurable, run_id: "job" } };
    const { code, id = "" } = await rejection(build(here, [retries]).invoke(human, job));
    expect(code).toBe("EFFECT_IN_DOUBT");
    for (const inDoubt of ["throw", "stop"] as const) {
      const graph = build({ ...here, inDoubt }, [retries]);
      const again = await graph.invoke(human, job).catch((error) => error);
      expect(again.code === "EFFECT_IN_DOUBT" || again.__interrupt__?.length === 1).toBe(true);
      expect((await graph.getState(config)).next).toEqual(["tools"]);
      expect(here.model.given).toHaveLength(1);
    }
    const doubt = (await here.tp.doubts.get(id)) ?? expect.fail("no doubt");
    await here.tp.doubts.resolve(doubt, done("by hand"), { who: "ana", why: "asked" });
    const { messages } = await build(here, [retries]).invoke(null, config);
    expect(messages.at(-2)?.content).toBe("by hand");
  });

  it("hears the last word of a look-up that settles the doubt in between", async () => {
    const here = scene();
    const answers = [unknown(), refused("the card is blocked")];
    const looked = { ...here, rules: { reconcile: () => answers.shift() ?? expect.fail("asked too often") } };
    const build = builds["guardMiddleware outside"] ?? expect.fail();
    const error = await rejection(build(looked, [retries]).invoke(human, config)).catch(() => undefined);
    expect(findTwiceproofError(error, "EFFECT_IN_DOUBT")).toBeUndefined();
    expect(here.count()).toBe(1);
  });

  it("leaves it also inside, when it does not retry what is no failure", async () => {
    const here = scene();
    const careful = toolRetryMiddleware({
      maxRetries: 2,
      initialDelayMs: 1,
      retryOn: (error) => error.name !== "GraphInterrupt" && findTwiceproofError(error) === undefined,
      onFailure: "error",
    });
    const build = builds["effectTool, and so inside"] ?? expect.fail();
    const { code, id = "" } = await rejection(build(here, [careful]).invoke(human, config));
    expect(code).toBe("EFFECT_IN_DOUBT");
    const doubt = (await here.tp.doubts.get(id)) ?? expect.fail("no doubt");
    await here.tp.doubts.resolve(doubt, done("by hand"), { who: "ana", why: "asked" });
    const { messages } = await build(here, [careful]).invoke(null, config);
    expect(messages.at(-2)?.content).toBe("by hand");
  });
});
