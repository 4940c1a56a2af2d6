import { type StructuredToolInterface, tool } from "@langchain/core/tools";
import { MemorySaver } from "@langchain/langgraph";
import { ToolNode } from "@langchain/langgraph/prebuilt";
import { createTwiceproof, defineEffect, done, memoryStore } from "@twiceproof/core";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import {
  doubtResume,
  effectTool,
  guardCheckpointer,
  guardGraph,
  guardMiddleware,
  guardTool,
  guardToolNode,
  guardTools,
} from "../src/index.ts";
import { rejection } from "./support/waiting.ts";

const tp = createTwiceproof({ store: memoryStore() });
const schema = z.object({ n: z.number() });
const charge = tool(({ n }: { n: number }) => n, { name: "charge", description: "charges", schema });
const look = tool(({ n }: { n: number }) => n, { name: "look", description: "looks", schema });
const effect = defineEffect({ name: "pay", input: schema, run: ({ n }) => n });
const wrong = (value: unknown): never => value as never;

describe("slips are told when the tool is made", () => {
  it.each([
    ["no tp", () => guardTool(charge, wrong({}))],
    ["no options", () => guardTool(charge, wrong(undefined))],
    ["a misspelt rule", () => guardTool(charge, wrong({ tp, kinds: "effect" }))],
    ["a kind that is none", () => guardTool(charge, wrong({ tp, kind: "write" }))],
    ["a lease too short", () => guardTool(charge, { tp, leaseMs: 1 })],
    ["mayInterrupt that is no boolean", () => guardTool(charge, wrong({ tp, mayInterrupt: "yes" }))],
    ["a key that is no function", () => guardTool(charge, wrong({ tp, key: "charge:1" }))],
    ["a tool of the provider's", () => guardTool(wrong({ type: "web_search" }), { tp })],
    ["nothing for a tool", () => guardTool(wrong(undefined), { tp })],
    ["a guard around a guard", () => guardTool(guardTool(charge, { tp }), { tp })],
    ["effectTool without a description", () => effectTool(effect, wrong({ tp }))],
    ["effectTool of something else", () => effectTool(wrong({ name: "pay" }), { tp, description: "pays" })],
    [
      "effectTool with a misspelt field",
      () => effectTool(effect, wrong({ tp, description: "pays", returndirect: true })),
    ],
    [
      "effectTool without a schema for the model",
      () => effectTool(defineEffect({ name: "pay", run: () => 1 }), { tp, description: "pays" }),
    ],
    [
      "tools with a name too many",
      () => guardTools([charge], wrong({ tp, kinds: { charge: "effect", charg: "read" } })),
    ],
    [
      "rules for a tool that is not there",
      () => guardTools([charge], wrong({ tp, kinds: { charge: "effect" }, rules: { chrge: {} } })),
    ],
    [
      "a middleware with rules for a tool that has no kind",
      () => guardMiddleware({ tp, kinds: { charge: "effect" }, rules: { chrge: {} } }),
    ],
    [
      "a node with rules for a tool that has no kind",
      () => guardToolNode(new ToolNode([charge]), { tp, kinds: { charge: "effect" }, rules: { chrge: {} } }),
    ],
    ["kinds that are none", () => guardTools([charge], wrong({ tp, kinds: "effect" }))],
    ["a node that is none", () => guardToolNode(wrong({}), { tp, kinds: {} })],
    ["a middleware with a misspelt option", () => guardMiddleware(wrong({ tp, kind: {} }))],
    ["a saver that is guarded", () => guardCheckpointer(guardCheckpointer(new MemorySaver(), { tp }), { tp })],
    ["a saver that is none", () => guardCheckpointer(wrong({}), { tp })],
    ["a graph that is none", () => guardGraph({}, { tp })],
    ["inDoubt that is none", () => guardGraph({}, wrong({ tp, inDoubt: "ignore" }))],
    [
      "a resume without a doubt",
      () => doubtResume([{ id: "a", value: "sure?" }], done(1), { who: "ana", why: "asked" }),
    ],
    [
      "a verdict without who",
      () => doubtResume({ value: { type: "twiceproof/in-doubt", id: "a" } }, done(1), wrong({ why: "x" })),
    ],
    [
      "a verdict that is none",
      () => doubtResume({ value: { type: "twiceproof/in-doubt", id: "a" } }, wrong("done"), { who: "a", why: "b" }),
    ],
  ])("%s", (_, make) => {
    expect(make).toThrow(expect.objectContaining({ code: "INVALID_ARGUMENT" }));
  });

  it("a tool of which nobody said what it is", async () => {
    const unclassified = expect.objectContaining({
      code: "TOOL_UNCLASSIFIED",
      message: expect.stringContaining('"look"'),
    });
    // @ts-expect-error look has no kind
    expect(() => guardTools([charge, look], { tp, kinds: { charge: "effect" } })).toThrow(unclassified);
    expect(() => guardTools([look], { tp, kinds: () => undefined })).toThrow(unclassified);
    expect(() => guardToolNode(new ToolNode([look]), { tp, kinds: {} })).toThrow(unclassified);
    const { wrapToolCall } = guardMiddleware({ tp, kinds: {} });
    expect(await rejection(wrapToolCall({ tool: look }, () => 1))).toMatchObject({ code: "TOOL_UNCLASSIFIED" });
  });
});

describe("a guarded tool", () => {
  it("is a copy of the tool in all but its calls", () => {
    const guarded = guardTool(charge, { tp });
    expect(guarded).not.toBe(charge);
    expect(guarded).toBeInstanceOf(charge.constructor);
    expect({ ...guarded }).toEqual({ ...charge });
    expect(guardTool(look, { tp, kind: "read" })).toBe(look);
    expect(guardTools([charge, look], { tp, kinds: { charge: "effect", look: "read" } })[1]).toBe(look);
  });

  it("may be an instance of a class with private fields", async () => {
    const { StructuredTool } = await import("@langchain/core/tools");
    class Charger extends StructuredTool {
      readonly name = "charge";
      readonly description = "charges";
      override readonly schema = schema;
      #count = 0;
      protected async _call({ n }: { n: number }, _manager: unknown, config?: { signal?: AbortSignal }) {
        expect(config?.signal).toBeInstanceOf(AbortSignal);
        return `${n} charged ${++this.#count}`;
      }
    }
    const guarded = guardTool(new Charger() as unknown as StructuredToolInterface, { tp, key: () => "class" });
    expect(await guarded.invoke({ n: 1 })).toBe("1 charged 1");
    expect(await guarded.invoke({ n: 1 })).toBe("1 charged 1");
  });

  it("may take a string", async () => {
    let count = 0;
    const say = tool((text: string) => `${text} ${++count}`, { name: "say", description: "says", schema: z.string() });
    const guarded = guardTool(say as unknown as StructuredToolInterface, { tp, key: () => "say" });
    expect(await guarded.invoke("hello")).toBe("hello 1");
    expect(await guarded.invoke("hello")).toBe("hello 1");
  });

  it("refuses an input under a key that stands for another, and a model is told so", async () => {
    const guarded = guardTool(charge, { tp, key: () => "one key" });
    expect(await guarded.invoke({ n: 1 })).toBe(1);
    expect(await rejection(guarded.invoke({ n: 2 }))).toMatchObject({ code: "EFFECT_KEY_REUSED" });
  });

  it("checks the schema before anything is claimed", async () => {
    const guarded = guardTool(charge, { tp, key: () => "never" });
    await rejection(guarded.invoke({ n: "x" } as never));
    expect(await guarded.invoke({ n: 3 })).toBe(3);
  });
});

describe("an effect's tool", () => {
  it("gets what the schema made of the input, once, and an idempotency key", async () => {
    const given: unknown[] = [];
    const tripled = defineEffect({
      name: "triple",
      input: z.object({ n: z.string().transform(Number) }),
      key: ({ n }) => `triple:${n}`,
      run: ({ n }, { idempotencyKey, signal }) => {
        given.push(n, idempotencyKey.length, signal.aborted);
        return n * 3;
      },
    });
    expect(await effectTool(tripled, { tp, description: "triples" }).invoke({ n: "14" })).toBe(42);
    expect(given).toEqual([14, 36, false]);
  });

  it("takes a JSON schema for the model beside a schema of any library", async () => {
    const input = {
      "~standard": {
        version: 1 as const,
        vendor: "own",
        validate: (value: unknown) => ({ value: { n: Number((value as { n: unknown }).n) + 1 } }),
      },
    };
    const added = defineEffect({ name: "add", input, key: () => "add", run: (x) => (x as { n: number }).n });
    const schema = { type: "object", properties: { n: { type: "number" } }, required: ["n"] } as const;
    expect(await effectTool(added, { tp, description: "adds", schema }).invoke({ n: 1 })).toBe(2);
  });
});

it("the guard of a saver is the saver, to whoever asks", () => {
  expect(guardCheckpointer(new MemorySaver(), { tp })).toBeInstanceOf(MemorySaver);
});

it("what a tool throws when it was called off proves nothing, whatever `classify` says", async () => {
  const abort = new DOMException("called off", "AbortError");
  const classify = () => "released" as const;
  const thrown: unknown[] = [abort, new TypeError("never sent")];
  const flaky = tool(() => Promise.reject(thrown.shift()), { name: "flaky", description: "fails", schema });
  const guarded = guardTool(flaky, { tp, classify, key: ({ n }) => `flaky:${n}` });
  expect(await rejection(guarded.invoke({ n: 1 }))).toMatchObject({ code: "EFFECT_IN_DOUBT" });
  expect(await rejection(guarded.invoke({ n: 2 }))).toMatchObject({ code: "EFFECT_NOT_EXECUTED" });
});

it("rules know the input of their tool", () => {
  guardTools([charge, look], {
    tp,
    kinds: { charge: "effect", look: "read" },
    rules: { charge: { key: ({ n }) => `charge:${n.toFixed()}`, reconcile: ({ n }) => done(n) } },
  });
  guardMiddleware({
    tp,
    kinds: { charge: "effect" },
    rules: { charge: { key: ({ n }: { n: number }) => `charge:${n}` } },
  });
});

it("a read claims nothing and needs no thread", async () => {
  const read = effectTool(defineEffect({ ...effect, name: "read", kind: "read" }), { tp, description: "reads" });
  expect(await read.invoke({ n: 5 })).toBe(5);
  expect(await read.invoke({ n: 5 })).toBe(5);
});
