import { Command, interrupt } from "@langchain/langgraph";
import { createReactAgent } from "@langchain/langgraph/prebuilt";
import { createTwiceproof, defineEffect, done, memoryStore } from "@twiceproof/core";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { type DoubtInterrupt, doubtResume, effectTool, guardGraph, isDoubtInterrupt } from "../src/index.ts";
import { by, config, doubtSuite, human, losing, scene } from "./support/doubts.ts";
import {
  byGuardTool,
  guarded,
  handBuilt,
  others,
  type Runnable,
  type Scene,
  toolNode,
  ways,
} from "./support/graphs.ts";
import { wishing } from "./support/model.ts";
import { gate, rejection, until } from "./support/waiting.ts";

doubtSuite(ways);

describe("a doubt beside the tool's own interrupts", () => {
  /** Asks only when the doubt has left the step. */
  function asking(after: Promise<void>): NonNullable<Scene["others"]> {
    return {
      async ask() {
        await after;
        return `${interrupt("first?")}+${interrupt("second?")}`;
      },
    };
  }

  function built(here: Scene): Runnable {
    const scene = guarded(here);
    const graph = handBuilt(scene, toolNode([byGuardTool(scene), ...others(scene)]));
    return guardGraph(graph, { tp: here.tp, inDoubt: "stop" });
  }

  it("does not shift their answers", async () => {
    const { charge, count } = losing();
    const doubted = gate();
    const model = wishing({ name: "charge", args: { n: 0 } }, { name: "ask", args: { n: 1 } });
    const graph = built(scene(charge, { model, others: asking(doubted.opened) }));
    const doubt = await graph.invoke(human, config);
    doubted.open();
    expect(doubt.__interrupt__?.map(({ value }) => isDoubtInterrupt(value))).toEqual([true]);
    const first = await graph.invoke(doubtResume(doubt.__interrupt__ ?? [], done("by hand"), by), config);
    expect(first.__interrupt__).toMatchObject([{ value: "first?" }]);
    const second = await graph.invoke(new Command({ resume: "A" }), config);
    expect(second.__interrupt__).toMatchObject([{ value: "second?" }]);
    const { messages } = await graph.invoke(new Command({ resume: "B" }), config);
    expect(messages.slice(2).map(({ content }) => content)).toEqual(["by hand", "A+B", "done"]);
    expect(count()).toBe(1);
  });

  it("leaves an answer alone that is not for it, and comes again", async () => {
    const { charge, count } = losing();
    const graph = built(scene(charge));
    await graph.invoke(human, config);
    for (const resume of ["yes", { decision: "retry" }, { ["0".repeat(64)]: { verdict: done("x"), ...by } }]) {
      const again = await graph.invoke(new Command({ resume }), config);
      expect(again.__interrupt__?.map(({ value }) => isDoubtInterrupt(value))).toEqual([true]);
    }
    expect(count()).toBe(1);
  });

  it("is not settled by whoever resumes another thread", async () => {
    const { charge } = losing();
    const here = scene(charge);
    const graph = built(here);
    const stopped = await graph.invoke(human, config);
    const other = { configurable: { thread_id: "another" } };
    await graph.invoke(human, other);
    await graph.invoke(doubtResume(stopped.__interrupt__ ?? [], done("stolen"), by), other).catch(() => undefined);
    const [{ value } = expect.fail()] = stopped.__interrupt__ ?? [];
    expect(await here.tp.doubts.get((value as DoubtInterrupt).id)).not.toBeNull();
  });

  it("takes a verdict that was written by hand, as plain JSON", async () => {
    const { charge, count } = losing();
    const graph = built(scene(charge));
    const stopped = await graph.invoke(human, config);
    const [{ value } = expect.fail()] = stopped.__interrupt__ ?? [];
    const { id } = value as DoubtInterrupt;
    const resume = { id, verdict: { answer: "refused", why: "the card is blocked" }, ...by };
    const error = await rejection(graph.invoke(new Command({ resume }), config));
    expect(error).toMatchObject({ code: "EFFECT_REFUSED", message: expect.stringContaining("the card is blocked") });
    expect(count()).toBe(1);
  });
});

describe("without a checkpointer", () => {
  const pay = defineEffect({
    name: "charge",
    input: z.object({ n: z.number() }),
    key: ({ n }) => `charge:${n}`,
    run: (): string => {
      throw new Error("lost");
    },
  });

  it("a model is told the fixed text of a doubt, and nothing is put to it", async () => {
    const model = wishing({ name: "charge", args: { n: 0 } });
    const charge = effectTool(pay, { tp: createTwiceproof({ store: memoryStore() }), description: "pays" });
    const { messages } = await createReactAgent({ llm: model, tools: [charge] }).invoke(human);
    expect(messages.at(-2)?.content).toMatch(
      /Do not try it again in any form; tell the user that it is being checked\.$/,
    );
  });

  it("a caller that is no agent gets the error", async () => {
    const charge = effectTool(pay, { tp: createTwiceproof({ store: memoryStore() }), description: "pays" });
    expect(await rejection(charge.invoke({ n: 1 }))).toMatchObject({ code: "EFFECT_IN_DOUBT" });
  });
});

it("a call that runs elsewhere is waited for; with `waitMs` the model is told that it runs", async () => {
  const { promise, resolve: finish } = Promise.withResolvers<string>();
  let count = 0;
  const tp = createTwiceproof({ store: memoryStore() });
  const slow = (name: string, waitMs?: number) =>
    effectTool(
      defineEffect({
        name,
        input: z.object({ n: z.number() }),
        key: ({ n }) => `${name}:${n}`,
        ...(waitMs !== undefined && { waitMs }),
        run: () => {
          count++;
          return promise;
        },
      }),
      { tp, description: name },
    );
  const call = (id: string) => ({ id, name: "any", args: { n: 0 }, type: "tool_call" as const });
  const impatient = slow("impatient", 10);
  const first = impatient.invoke(call("a"));
  await until(() => count === 1);
  expect(await impatient.invoke(call("b"))).toMatchObject({
    status: "error",
    content: expect.stringMatching(
      /^"impatient" is still running \(ref [0-9a-f]{8}\)\. Do not start another one; .*later\.$/,
    ),
  });
  const patient = slow("patient");
  const both = [patient.invoke(call("c")), patient.invoke(call("d"))];
  await until(() => count === 2);
  finish("finished");
  for (const message of [await first, ...(await Promise.all(both))])
    expect(message).toMatchObject({ content: "finished" });
  expect(count).toBe(2);
});
