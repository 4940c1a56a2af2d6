import { Command, interrupt, MemorySaver } from "@langchain/langgraph";
import { createReactAgent } from "@langchain/langgraph/prebuilt";
import { createTwiceproof, defineEffect, done, memoryStore, notDone } from "@twiceproof/core";
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
    for (const resume of ["yes", { decision: "retry" }, { id: "order-1", verdict: "approve" }, [{ id: "a" }]]) {
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
    const stolen = graph.invoke(doubtResume(stopped.__interrupt__ ?? [], done("stolen"), by), other);
    expect(await rejection(stolen)).toMatchObject({ code: "INVALID_ARGUMENT" });
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

describe("a verdict on its own, beside a question that another tool asks", () => {
  const question = "refund?";

  /** Both stand open in the step; the question is asked first. */
  async function stopped() {
    const { charge, count } = losing();
    const answers: unknown[] = [];
    const model = wishing({ name: "ask", args: { n: 1 } }, { name: "charge", args: { n: 0 } });
    const here = guarded(
      scene(charge, { model, others: { ask: () => String(answers.push(interrupt(question)) && answers.at(-1)) } }),
    );
    const graph = guardGraph(handBuilt(here, toolNode([byGuardTool(here), ...others(here)])), {
      tp: here.tp,
      inDoubt: "stop",
    });
    // One task for each call, so that both come to light.
    const { __interrupt__: interrupts = [] } = await graph.invoke(human, config);
    const doubt = interrupts.map(({ value }) => value).find(isDoubtInterrupt);
    const { id } = doubt ?? (await here.tp.doubts.list()).doubts[0] ?? expect.fail("no doubt");
    return { here, graph, id, answers, count };
  }

  const verdict = { answer: "done", result: "by hand" };

  it.each<[string, (id: string) => object]>([
    ["written out", (id) => ({ id, verdict, ...by })],
    ["as a map", (id) => ({ [id]: { verdict, ...by } })],
  ])("%s: settles the doubt, is no answer to the question, and may be sent again", async (_, write) => {
    const { here, graph, id, answers, count } = await stopped();
    for (let sent = 0; sent < 2; sent++) {
      const state = await graph.invoke(new Command({ resume: write(id) }), config);
      expect(state.__interrupt__?.map(({ value }) => value)).toEqual([question]);
      expect(await here.tp.doubts.get(id)).toBeNull();
    }
    expect(answers).toEqual([]);
    const { messages } = await graph.invoke(new Command({ resume: "yes" }), config);
    expect(messages.slice(2, 4).map(({ content }) => content)).toEqual(["yes", "by hand"]);
    expect(count()).toBe(1);
  });

  it.each<[string, (id: string) => object]>([
    ["without who", (id) => ({ id, verdict, why: "asked" })],
    ["with an answer that is none", (id) => ({ id, verdict: { answer: "yes" }, ...by })],
    ["with a verdict that is a word", (id) => ({ id, verdict: "done", ...by })],
    ["under the short id", (id) => ({ id: id.slice(0, 8), verdict, ...by })],
    ["under an id that is no doubt", () => ({ id: "0".repeat(64), verdict, ...by })],
    ["as a map under such an id", () => ({ ["0".repeat(64)]: { verdict, ...by } })],
    ["as a map, and another beside it", (id) => ({ [id]: { verdict, ...by }, ["0".repeat(64)]: { verdict, ...by } })],
    ["beside something else", (id) => ({ [id]: { verdict, ...by }, approved: true })],
    ["right under an interrupt's id", () => ({ ["a".repeat(32)]: { verdict, ...by } })],
    ["under an interrupt's id, without who", (id) => ({ ["a".repeat(32)]: { [id]: { verdict, why: "asked" } } })],
  ])("%s: is refused before anything runs, and nothing is settled", async (_, write) => {
    const { here, graph, id, answers } = await stopped();
    const refused = graph.invoke(new Command({ resume: write(id) }), config);
    expect(await rejection(refused)).toMatchObject({ code: "INVALID_ARGUMENT" });
    expect(await here.tp.doubts.get(id)).not.toBeNull();
    expect(answers).toEqual([]);
  });

  it("with an update beside it: is refused", async () => {
    const { graph, id } = await stopped();
    for (const more of [{ update: { messages: [] } }, { goto: "agent" }])
      expect(
        await rejection(graph.invoke(new Command({ resume: { id, verdict, ...by }, ...more }), config)),
      ).toMatchObject({ code: "INVALID_ARGUMENT" });
  });
});

it("19: under a key, a resume on one thread does not settle another's doubt, also where the graph is not guarded", async () => {
  const { charge, count } = losing();
  const here = guarded(scene(charge, { rules: { key: () => "charge:o-1" } }));
  const graph = handBuilt({ ...here, saver: new MemorySaver() }, toolNode([byGuardTool(here)]));
  const other = { configurable: { thread_id: "another" } };
  await graph.invoke(human, config);
  const { __interrupt__: interrupts = [] } = await graph.invoke(human, other);
  expect(interrupts.map(({ value }) => isDoubtInterrupt(value))).toEqual([true]);
  const again = await graph.invoke(doubtResume(interrupts, notDone(), by), other);
  expect(again.__interrupt__?.map(({ value }) => isDoubtInterrupt(value))).toEqual([true]);
  expect(count()).toBe(1);
  await graph.invoke(doubtResume((await graph.invoke(null, config)).__interrupt__ ?? [], notDone(), by), config);
  expect(count()).toBe(2);
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
