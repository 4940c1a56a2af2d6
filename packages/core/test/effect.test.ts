import { describe, expect, expectTypeOf, it } from "vitest";
import { z } from "zod";
import { defineEffect, type Effect } from "../src/effect.ts";
import { memoryStore } from "../src/memory-store.ts";
import { createTwiceproof } from "../src/twiceproof.ts";
import { gate, notRun } from "./support/waiting.ts";
import { problem, world } from "./support/world.ts";

const refusal = (act: () => unknown): Promise<Error & { code: string }> =>
  problem((async () => act())()) as Promise<Error & { code: string }>;

describe("defineEffect", () => {
  it("makes frozen data of its own", () => {
    const rules = { name: "charge", run: () => 1 };
    const effect = defineEffect(rules);
    expect(Object.isFrozen(effect)).toBe(true);
    expect(effect).toEqual(rules);
    expect(effect).not.toBe(rules);
  });

  it.each<readonly [string, object]>([
    ["name", { name: undefined }],
    ["name", { name: "" }],
    ["name", { name: "a\nb" }],
    ["name", { name: "x".repeat(129) }],
    ["run", { run: undefined }],
    ["input", { input: { parse: () => 1 } }],
    ["input", { input: { "~standard": {} } }],
    ["kind", { kind: "write" }],
    ["identity", { identity: "output" }],
    ["store", { store: "nothing" }],
    ["key", { key: "order:1" }],
    ["classify", { classify: "oneRequest" }],
    ["reconcile", { reconcile: true }],
    ...[0, -1, Number.NaN, 999, 1_000.5, Number.POSITIVE_INFINITY, "30000"].map(
      (leaseMs) => ["leaseMs", { leaseMs }] as const,
    ),
    ...[-1, Number.NaN, 2 ** 31].map((waitMs) => ["waitMs", { waitMs }] as const),
    ["settleDelayMs", { settleDelayMs: -1 }],
  ])("refuses a wrong %s: %o", async (what, wrong) => {
    const effect = { name: "charge", run: () => 1, ...wrong };
    const error = await refusal(() => defineEffect(effect as never));
    expect(error).toMatchObject({ code: "INVALID_ARGUMENT" });
    expect(error.message).toContain(`\`${what}\``);
  });

  it("is checked also where an effect was made by hand", async () => {
    const { tp, asked } = world();
    const byHand = { name: "charge", key: () => "k", run: () => 1, leaseMs: 0 };
    expect(await problem(tp.once(byHand, undefined))).toMatchObject({ code: "INVALID_ARGUMENT" });
    expect(await problem(tp.once("k:1", () => 1, { leaseMs: 999 }))).toMatchObject({ code: "INVALID_ARGUMENT" });
    expect(await refusal(() => world({ effects: [byHand as never] }))).toMatchObject({ code: "INVALID_ARGUMENT" });
    expect(asked("claim")).toHaveLength(0);
  });

  it("infers inputs and results from the schema, the body, or both", () => {
    const plain = defineEffect({ name: "a", run: (input: { cents: number }) => [input.cents] });
    expectTypeOf(plain).toEqualTypeOf<Effect<{ cents: number }, { cents: number }, number[]>>();
    const parsed = defineEffect({
      name: "b",
      input: z.object({ cents: z.string().transform(Number) }),
      key: (input) => `order:${input.cents.toFixed()}`,
      run: async (input) => input.cents,
    });
    expectTypeOf(parsed).toEqualTypeOf<Effect<{ cents: string }, { cents: number }, number>>();
  });
});

describe("createTwiceproof", () => {
  it.each<readonly [string, object]>([
    ["store", { store: undefined }],
    ["store", { store: {} }],
    ["namespace", { namespace: "" }],
    ["namespace", { namespace: "a\0b" }],
    ["storeTimeoutMs", { storeTimeoutMs: -1 }],
  ])("refuses a wrong %s", async (what, wrong) => {
    const error = await refusal(() => createTwiceproof({ store: memoryStore(), ...wrong } as never));
    expect(error).toMatchObject({ code: "INVALID_ARGUMENT" });
    expect(error.message).toContain(`\`${what}\``);
  });

  it("refuses two different effects of one name, and takes the same one twice", async () => {
    const make = () => defineEffect({ name: "charge", run: () => 1 });
    const charge = make();
    world({ effects: [charge, charge] });
    const error = await refusal(() => world({ effects: [charge, make()] }));
    expect(error.code).toBe("INVALID_ARGUMENT");
    expect(error.message).toContain('"charge"');
  });

  it("does nothing yet: no question to the store", () => {
    expect(world({ effects: [] }).asked("claim")).toEqual([]);
  });
});

describe("the input", () => {
  const input = z.object({ order: z.string().startsWith("o-"), cents: z.number().int().default(5) });
  const charge = defineEffect({ name: "charge", input, key: ({ order }) => order, run: (each) => each });

  it("is what the schema makes of it, for the key and the body", async () => {
    const { tp, record } = world();
    expect(await tp.once(charge, { order: "o-1" })).toEqual({ order: "o-1", cents: 5 });
    expect((await record("o-1")).key).toBe("o-1");
  });

  it("that does not fit is refused before anything is claimed, and no value is told", async () => {
    const { tp, asked } = world();
    const error = await problem(tp.once(charge, { order: "secret-canary", cents: 1.25 }));
    expect(error).toMatchObject({ code: "INVALID_INPUT", status: 409 });
    expect(error.message).toContain("input.order");
    expect(error.message).toContain("input.cents");
    expect(`${error.message}${error.help}${JSON.stringify(error)}`).not.toMatch(/canary|1\.25/);
    expect(asked("claim")).toHaveLength(0);
  });

  it("may be checked by an async schema", async () => {
    const { tp, asked } = world();
    const known = z.string().refine(async (id) => id === "known");
    const look = defineEffect({ name: "look", input: known, key: (id) => id, run: (id) => id });
    expect(await tp.once(look, "known")).toBe("known");
    expect(await problem(tp.once(look, "canary"))).toMatchObject({ code: "INVALID_INPUT" });
    expect(asked("claim")).toHaveLength(1);
  });

  it("is checked for a read too", async () => {
    const { tp } = world();
    const read = defineEffect({ name: "read", kind: "read", input: z.string(), run: notRun });
    expect(await problem(tp.once(read, 5 as never))).toMatchObject({ code: "INVALID_INPUT" });
  });

  it("that no canonical form exists for is refused before anything is claimed", async () => {
    const { tp, asked } = world();
    const call = defineEffect({ name: "call", key: () => "k", run: (_: { back: () => void }) => notRun() });
    await expect(tp.once(call, { back: () => undefined })).rejects.toThrow(TypeError);
    expect(asked("claim")).toHaveLength(0);
  });
});

describe("the order of a start", () => {
  it("is: input, identity, claim, body", async () => {
    const order: string[] = [];
    const { tp, around } = world();
    around("claim", (pass) => {
      order.push("claim");
      return pass();
    });
    const { opened, open } = gate();
    const effect = defineEffect({
      name: "e",
      input: z.string().refine(() => order.push("input") > 0),
      key: (text) => {
        order.push("key");
        return text;
      },
      run: () => {
        order.push("run");
        open();
      },
    });
    await tp.once(effect, "x");
    await opened;
    expect(order).toEqual(["input", "key", "claim", "run"]);
  });
});
