import { Command, interrupt, MemorySaver } from "@langchain/langgraph";
import { createReactAgent } from "@langchain/langgraph/prebuilt";
import { createTwiceproof, defineEffect, done, memoryStore, notDone, refused } from "@twiceproof/core";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { type DoubtInterrupt, doubtResume, effectTool, guardGraph, isDoubtInterrupt } from "../src/index.ts";
import { agentWays } from "./support/agents.ts";
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

const human = { messages: [{ role: "user", content: "go" }] };
const config = { configurable: { thread_id: "thread" } };
const by = { who: "ana", why: "asked the provider" };
const unknown = /^The outcome of "charge" is unknown \(ref [0-9a-f]{8}\)\. It may have happened\./;

function scene(charge: Scene["charge"], more: Partial<Scene> = {}): Scene {
  const tp = createTwiceproof({ store: memoryStore() });
  return { tp, model: wishing({ name: "charge", args: { n: 0 } }), saver: new MemorySaver(), charge, ...more };
}

/** Throws the first time, as if its answer had been lost. */
function losing(): { readonly charge: Scene["charge"]; readonly count: () => number } {
  let count = 0;
  const charge = (): string => {
    if (++count === 1) throw new Error("connection reset");
    return `charged at attempt ${count}`;
  };
  return { charge, count: () => count };
}

async function resolve(tp: Scene["tp"], id: string | undefined, verdict: Parameters<typeof tp.doubts.resolve>[1]) {
  const doubt = await tp.doubts.get(id ?? "");
  expect(await tp.doubts.resolve(doubt ?? expect.fail("no doubt"), verdict, by)).toBe("applied");
}

/** Nothing of a doubt is in what a model was given. */
function expectNoDoubtGiven(model: Scene["model"]): void {
  for (const given of model.given) expect(given).not.toMatch(/unknown|GraphInterrupt|in doubt|mistakes/i);
}

describe.each(Object.entries({ ...ways, ...agentWays }))("a doubt in %s", (_, build) => {
  it("2: rejects at the boundary, stands in the checkpoint, and goes on with the verdict's result", async () => {
    const { charge, count } = losing();
    const here = scene(charge);
    const graph = build(here);
    const error = await rejection(graph.invoke(human, config));
    expect(error).toMatchObject({ code: "EFFECT_IN_DOUBT", message: expect.stringMatching(unknown) });
    expect(here.model.given).toHaveLength(1);
    expect((await graph.getState(config)).next).toEqual(["tools"]);
    expect(await rejection(graph.invoke(null, config))).toMatchObject({ code: "EFFECT_IN_DOUBT", id: error.id });
    await resolve(here.tp, error.id, done("charged, says the provider"));
    const { messages } = await build(here).invoke(null, config);
    expect(messages.map(({ content }) => content)).toEqual(["go", "", "charged, says the provider", "done"]);
    expect(count()).toBe(1);
    expectNoDoubtGiven(here.model);
  });

  it("19: runs again only after a verdict that it did not happen", async () => {
    const { charge, count } = losing();
    const here = scene(charge);
    const error = await rejection(build(here).invoke(human, config));
    await resolve(here.tp, error.id, notDone());
    const { messages } = await build(here).invoke(null, config);
    expect(messages.at(-2)?.content).toBe("charged at attempt 2");
    expect(count()).toBe(2);
  });

  it("15: is settled by a resume that carries the verdict, which is kept with who and why", async () => {
    const { charge, count } = losing();
    const here = scene(charge);
    const graph = build({ ...here, inDoubt: "stop" });
    const { __interrupt__: interrupts = [] } = await graph.invoke(human, config);
    expect(interrupts).toHaveLength(1);
    const [{ value } = { value: undefined }] = interrupts;
    expect(isDoubtInterrupt(value)).toBe(true);
    expect(value).toMatchObject({ tool: "charge", message: expect.stringMatching(unknown) });
    const { messages } = await graph.invoke(doubtResume(interrupts, done("by hand"), by), config);
    expect(messages.at(-2)?.content).toBe("by hand");
    expect(count()).toBe(1);
    const history = await here.tp.doubts.history((value as DoubtInterrupt).id);
    expect(history).toContainEqual(expect.objectContaining(by));
    expectNoDoubtGiven(here.model);
  });

  it("tells a model why a tool was refused or did not run, and nothing more", async () => {
    const here = scene(() => {
      throw refused("the card is blocked");
    });
    const { messages } = await build(here)
      .invoke(human, config)
      .catch((error) => {
        // With a middleware of its own, or without handling, the framework lets a tool's error out.
        expect(error).toMatchObject({ message: expect.stringContaining("the card is blocked") });
        return { messages: [{ content: "the card is blocked" }] };
      });
    expect(messages.some(({ content }) => String(content).includes("the card is blocked"))).toBe(true);
  });

  it("an interrupt inside of an effect is a doubt, unless the effect says that it may", async () => {
    const asking = (): string => `charged, says ${interrupt("sure?")}`;
    const here = scene(asking);
    const error = await rejection(build(here).invoke(human, config));
    expect(error.code).toBe("EFFECT_IN_DOUBT");
    const history = await here.tp.doubts.history(error.id ?? "");
    expect(JSON.stringify(history)).toContain("Ask before the effect");

    const may = scene(asking, { rules: { mayInterrupt: true } });
    const graph = build(may);
    expect((await graph.invoke(human, config)).__interrupt__).toMatchObject([{ value: "sure?" }]);
    const { messages } = await graph.invoke(new Command({ resume: "ana" }), config);
    expect(messages.at(-2)?.content).toBe("charged, says ana");
    expect((await may.tp.doubts.list()).doubts).toEqual([]);
  });
});

describe("several doubts at once", () => {
  const wishes = [0, 1, 2].map((n) => ({ name: "charge", args: { n } }));

  it.each(Object.entries({ ...ways, ...agentWays }))("are matched by their ids in %s", async (_, build) => {
    const bodies: number[] = [];
    const here = scene(
      ({ n }) => {
        bodies.push(n);
        throw new Error("lost");
      },
      { model: wishing(...wishes) },
    );
    const graph = build({ ...here, inDoubt: "stop" });
    let state = await graph.invoke(human, config);
    const names = new Map<string, string>();
    // In one task only one of them comes to light at a time.
    for (let round = 0; state.__interrupt__ !== undefined && round < 4; round++) {
      for (const { id } of (await here.tp.doubts.list()).doubts)
        if (!names.has(id)) names.set(id, `done ${names.size}`);
      state = await graph.invoke(
        doubtResume(state.__interrupt__, ({ id }) => done(names.get(id)), by),
        config,
      );
    }
    expect(bodies.toSorted()).toEqual([0, 1, 2]);
    expect(
      state.messages
        .slice(2, -1)
        .map(({ content }) => content)
        .toSorted(),
    ).toEqual(["done 0", "done 1", "done 2"]);
    expectNoDoubtGiven(here.model);
  });

  it("are told by one error", async () => {
    const here = scene(() => Promise.reject(new Error("lost")), { model: wishing(...wishes) });
    const build = agentWays["createAgent with effectTool"] ?? expect.fail();
    const error = await rejection(build(here).invoke(human, config));
    expect(error).toMatchObject({ code: "EFFECT_IN_DOUBT", cause: { errors: [{}, {}, {}] } });
  });
});

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
