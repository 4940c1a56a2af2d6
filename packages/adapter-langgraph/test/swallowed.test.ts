import { tool } from "@langchain/core/tools";
import {
  END,
  type LangGraphRunnableConfig,
  MemorySaver,
  MessagesAnnotation,
  START,
  StateGraph,
} from "@langchain/langgraph";
import { createTwiceproof, done, memoryStore, type Twiceproof } from "@twiceproof/core";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { guardCheckpointer, guardGraph, guardTool } from "../src/index.ts";
import { by } from "./support/doubts.ts";
import { rejection, until } from "./support/waiting.ts";

type Node = (state: typeof MessagesAnnotation.State, config: LangGraphRunnableConfig) => Promise<object>;

const config = { configurable: { thread_id: "thread", run_id: "job" } };
const human = { messages: [{ role: "user", content: "go" }] };

function graphOf(tp: Twiceproof, node: Node, besides: Node = async () => ({}), inDoubt: "throw" | "stop" = "throw") {
  let wentOn = 0;
  const graph = new StateGraph(MessagesAnnotation)
    .addNode("pays", node)
    .addNode("besides", besides)
    .addNode("goes on", () => {
      wentOn++;
      return {};
    })
    .addEdge(START, "pays")
    .addEdge(START, "besides")
    .addEdge(["pays", "besides"], "goes on")
    .addEdge("goes on", END)
    .compile({ checkpointer: guardCheckpointer(new MemorySaver(), { tp }) });
  return { graph: guardGraph(graph, { tp, inDoubt }), wentOn: () => wentOn };
}

function chargeOf(tp: Twiceproof) {
  let count = 0;
  const run = (): string => {
    count++;
    throw new Error("lost");
  };
  const charge = tool(run, { name: "charge", description: "charges", schema: z.object({ n: z.number() }) });
  return { charge: guardTool(charge, { tp }), count: () => count };
}

/** Code of one's own that calls a guarded tool, and makes something else of what it throws. */
const swallowers: Readonly<Record<string, (charge: ReturnType<typeof chargeOf>["charge"], tp: Twiceproof) => Node>> = {
  "a node": (charge) => async () => {
    const content = await charge.invoke({ n: 1 }).catch(() => "It failed. Try again.");
    return { messages: [{ role: "ai", content }] };
  },
  "a node round a subgraph": (charge) => {
    const sub = new StateGraph(MessagesAnnotation)
      .addNode("charges", async () => ({ messages: [{ role: "ai", content: await charge.invoke({ n: 1 }) }] }))
      .addEdge(START, "charges")
      .compile();
    return async (state) =>
      await sub.invoke(state).catch(() => ({ messages: [{ role: "ai", content: "Try again." }] }));
  },
  "a node in a subgraph": (charge) => {
    const sub = new StateGraph(MessagesAnnotation)
      .addNode("charges", async () => {
        const content = await charge.invoke({ n: 1 }).catch(() => "Try again.");
        return { messages: [{ role: "ai", content }] };
      })
      .addEdge(START, "charges")
      .compile();
    return async (state) => await sub.invoke(state);
  },
  "a node round a guarded graph on another thread": (charge, tp) => {
    const sub = new StateGraph(MessagesAnnotation)
      .addNode("charges", async () => ({ messages: [{ role: "ai", content: await charge.invoke({ n: 1 }) }] }))
      .addEdge(START, "charges")
      .compile({ checkpointer: guardCheckpointer(new MemorySaver(), { tp }) });
    const other = { configurable: { thread_id: "other", run_id: "sub" } };
    return async (state) =>
      await guardGraph(sub, { tp })
        .invoke(state, other)
        .catch(() => ({ messages: [{ role: "ai", content: "Try again." }] }));
  },
};

describe.each(Object.entries(swallowers))("%s that swallows a doubt", (_, swallower) => {
  it.each(["throw", "stop"] as const)("2: is not saved, and the run rejects with the doubt: %s", async (inDoubt) => {
    const tp = createTwiceproof({ store: memoryStore() });
    const { charge, count } = chargeOf(tp);
    const { graph, wentOn } = graphOf(tp, swallower(charge, tp), undefined, inDoubt);
    const first = await rejection(graph.invoke(human, config));
    expect(first.code).toBe("EFFECT_IN_DOUBT");
    expect(await rejection(graph.invoke(human, config))).toMatchObject({ code: "EFFECT_IN_DOUBT", id: first.id });
    expect((await graph.getState(config)).next).toContain("pays");
    expect(wentOn()).toBe(0);
    const doubt = (await tp.doubts.get(first.id ?? "")) ?? expect.fail("no doubt");
    await tp.doubts.resolve(doubt, done("by hand"), by);
    const { messages } = await graph.invoke(human, config);
    expect(messages.at(-1)?.content).toBe("by hand");
    expect([count(), wentOn()]).toEqual([1, 1]);
  });
});

it("what runs beside a swallowed doubt is not called off, and is saved", async () => {
  const tp = createTwiceproof({ store: memoryStore() });
  const { charge, count } = chargeOf(tp);
  let runs = 0;
  let wasAborted: boolean | undefined;
  const swallowed = Promise.withResolvers<void>();
  const pays: Node = async () => {
    const content = await charge.invoke({ n: 1 }).catch(() => "Try again.");
    swallowed.resolve();
    return { messages: [{ role: "ai", content }] };
  };
  const besides: Node = async (_, { signal }) => {
    runs++;
    await swallowed.promise;
    // Long enough for the task beside it to be saved, which is what would call this one off.
    let turns = 0;
    await until(() => ++turns > 20);
    wasAborted = signal?.aborted;
    return { messages: [{ role: "ai", content: "beside" }] };
  };
  const { graph } = graphOf(tp, pays, besides);
  for (let times = 0; times < 2; times++)
    expect(await rejection(graph.invoke(human, config))).toMatchObject({ code: "EFFECT_IN_DOUBT" });
  expect([count(), runs, wasAborted]).toEqual([1, 1, false]);
});
