import { tool } from "@langchain/core/tools";
import { MemorySaver } from "@langchain/langgraph";
import { createReactAgent } from "@langchain/langgraph/prebuilt";
import { createTwiceproof, defineEffect, memoryStore } from "@twiceproof/core";
import { createAgent } from "langchain";
import { expect, it } from "vitest";
import { z } from "zod";
import { effectTool, guardCheckpointer, guardGraph, guardMiddleware, guardTool } from "../src/index.ts";
import { wishing } from "./support/model.ts";

const tp = createTwiceproof({ store: memoryStore() });

it("smoke createAgent", async () => {
  let count = 0;
  const charge = tool(
    async ({ cents }: { cents: number }, config) => {
      count++;
      expect(config.signal).toBeInstanceOf(AbortSignal);
      return `charged ${cents}`;
    },
    {
      name: "charge",
      description: "d",
      schema: z.object({ cents: z.number() }),
    },
  );
  const agent = guardGraph(
    createAgent({
      model: wishing({ name: "charge", args: { cents: 5 } }),
      tools: [charge],
      middleware: [guardMiddleware({ tp, kinds: { charge: "effect" } })],
      checkpointer: guardCheckpointer(new MemorySaver(), { tp }),
    }),
    { tp },
  );
  const config = { configurable: { thread_id: "t1", run_id: "r1" } };
  const r = await agent.invoke({ messages: [{ role: "user", content: "go" }] }, config);
  console.log(r.messages.map((m) => [m.type, m.content]));
  expect(count).toBe(1);
  await agent.invoke({ messages: [{ role: "user", content: "go" }] }, config);
  expect(count).toBe(1);
});

it("doubt", async () => {
  let count = 0;
  const effect = defineEffect({
    name: "pay",
    input: z.object({ cents: z.number() }),
    run: async ({ cents }) => {
      count++;
      throw new Error("boom");
      return cents;
    },
  });
  const pay = effectTool(effect, { tp, description: "pays" });
  const model = wishing({ name: "pay", args: { cents: 5 } });
  const agent = guardGraph(
    createReactAgent({ llm: model, tools: [pay], checkpointSaver: guardCheckpointer(new MemorySaver(), { tp }) }),
    { tp },
  );
  const config = { configurable: { thread_id: "t2" } };
  const error = await agent.invoke({ messages: [{ role: "user", content: "go" }] }, config).catch((e) => e);
  console.log(error);
  expect(error.code).toBe("EFFECT_IN_DOUBT");
  expect(model.given).toHaveLength(1);
  const doubt = await tp.doubts.get(error.id);
  if (!doubt) throw new Error("no doubt");
  await tp.doubts.resolve(doubt, { answer: "done", result: "paid by hand" }, { who: "me", why: "saw it" });
  const r = await agent.invoke(null, config);
  console.log(r.messages.map((m: any) => [m.type, m.content]));
  expect(count).toBe(1);
});
