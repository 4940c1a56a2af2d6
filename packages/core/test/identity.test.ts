import { describe, expect, it } from "vitest";
import { defineEffect, type EffectRules } from "../src/effect.ts";
import { fingerprint } from "../src/fingerprint.ts";
import { identify, type Place } from "../src/identity.ts";
import { notRun } from "./support/waiting.ts";
import { problem, world } from "./support/world.ts";

const place: Place = { scope: "t", turn: "m1" };

function idOf(
  change: {
    namespace?: string;
    name?: string;
    input?: unknown;
    place?: Place;
    key?: string;
    rules?: Pick<EffectRules, "key" | "identity">;
  } = {},
): string {
  const { namespace = "default", name = "charge", input = { cents: 1 }, rules = {}, key } = change;
  return identify(namespace, name, rules, fingerprint(name, input), input, change.place ?? place, key).id;
}

describe("an identity", () => {
  it("without a key is scope, turn, name and input: a retry and a new call id are the same call", () => {
    expect(idOf()).toBe(idOf({ place: { ...place, callId: "another" } }));
    const others = [
      idOf({ place: { ...place, scope: "u" } }),
      idOf({ place: { ...place, turn: "m2" } }),
      idOf({ name: "refund" }),
      idOf({ input: { cents: 2 } }),
      idOf({ namespace: "staging" }),
      idOf({ rules: { identity: "call" }, place: { ...place, callId: "c1" } }),
      idOf({ rules: { identity: "call" }, place: { ...place, callId: "c2" } }),
    ];
    expect(new Set([idOf(), ...others]).size).toBe(others.length + 1);
  });

  it("with a key is the key alone, in its namespace", () => {
    expect(idOf({ key: "k" })).toBe(idOf({ key: "k", name: "refund", input: 7, place: {} }));
    expect(idOf({ key: "k" })).not.toBe(idOf({ key: "k", namespace: "staging" }));
    expect(idOf({ rules: { key: () => "k", identity: "call" } })).toBe(idOf({ key: "k" }));
    expect(idOf({ key: "given", rules: { key: () => "k" } })).toBe(idOf({ key: "given" }));
  });

  it("6: compares keys as bytes", () => {
    const keys = ["k", "K", "k ", " k", "k\u00e9", "ke\u0301", "k\t", "k\n"];
    expect(new Set(keys.map((key) => idOf({ key }))).size).toBe(keys.length);
  });

  it("cannot be had by shifting text from one part to the next", () => {
    expect(idOf({ place: { scope: "ab", turn: "c" } })).not.toBe(idOf({ place: { scope: "a", turn: "bc" } }));
  });
});

describe("a missing identity", () => {
  const charge = defineEffect({ name: "charge", run: (_: { card: string }) => notRun() });
  const byCall = defineEffect({ ...charge, identity: "call" });

  it("is told with the ways to give one, and nothing is claimed", async () => {
    const { tp, asked } = world();
    for (const options of [{}, { scope: "t" }, { turn: "m1" }, { callId: "c1" }]) {
      const error = await problem(tp.once(charge, { card: "canary" }, options));
      expect(error).toMatchObject({ code: "IDENTITY_MISSING", status: 409 });
      expect(error.message).toContain('"charge"');
      for (const way of ["defineEffect({ key:", "{ key: … }", "withRun", "{ scope: thread, turn: messageId }"])
        expect(error.help).toContain(way);
      expect(error.message + error.help).not.toContain("canary");
    }
    expect(asked("claim")).toHaveLength(0);
  });

  it("of one call among equal ones lacks the call's id", async () => {
    const { tp, asked } = world();
    const error = await problem(tp.once(byCall, { card: "x" }, { scope: "t", turn: "m1" }));
    expect(error).toMatchObject({ code: "IDENTITY_MISSING" });
    expect(error.message).toContain("call id");
    expect(asked("claim")).toHaveLength(0);
  });

  it("is none: scope and turn at the call are enough, and so is a run", async () => {
    const { tp, executions } = world();
    const pay = defineEffect({ name: "pay", run: (n: number) => n });
    expect(await tp.once(pay, 1, { scope: "t", turn: "m1" })).toBe(1);
    expect(await tp.withRun({ thread: "t", turn: "m1" }, (run) => run.once(pay, 1))).toBe(1);
    expect(executions()).toBe(1);
  });
});

describe("a wrong key", () => {
  const wrong: readonly (readonly [string, unknown])[] = [
    ["an empty one", ""],
    ["over 512 bytes", "x".repeat(513)],
    ["over 512 bytes of UTF-8", "é".repeat(257)],
    ["half a surrogate pair", "a\ud800:b"],
    ["a NUL", "a\0b"],
    ["a number", 7],
    ["null", null],
    ["a promise", Promise.resolve("k")],
  ];

  it.each(wrong)("%s is refused before anything is claimed, wherever it comes from", async (_, key) => {
    const { tp, asked } = world();
    const effect = defineEffect({ name: "charge", key: () => key as string, run: notRun });
    expect(await problem(tp.once(effect, undefined))).toMatchObject({ code: "INVALID_ARGUMENT" });
    const given = defineEffect({ name: "charge", run: notRun });
    expect(await problem(tp.once(given, undefined, { key: key as string }))).toMatchObject({
      code: "INVALID_ARGUMENT",
    });
    expect(await problem(tp.once(key as string, notRun))).toMatchObject({ code: "INVALID_ARGUMENT" });
    expect(asked("claim")).toHaveLength(0);
  });

  it("of the longest kind is taken", async () => {
    const { tp, record } = world();
    const longest = `${"日".repeat(170)}:1`;
    expect(await tp.once(longest, () => 1)).toBe(1);
    expect((await record(longest)).key).toBe(longest);
  });

  it.each([
    ["scope", { scope: "a\0b", turn: "m1" }],
    ["turn", { scope: "t", turn: "" }],
    ["callId", { scope: "t", turn: "m1", callId: "\udc00" }],
  ])("a wrong %s is refused too", async (what, at) => {
    const { tp, asked } = world();
    const effect = defineEffect({ name: "charge", identity: "call", run: notRun });
    const error = await problem(tp.once(effect, undefined, at));
    expect(error).toMatchObject({ code: "INVALID_ARGUMENT" });
    expect(error.message).toContain(`\`${what}\``);
    expect(asked("claim")).toHaveLength(0);
  });

  it("a key without a body, and a body without a key, are told apart", async () => {
    const { tp } = world();
    for (const args of [["k:1"], ["k:1", 5], [undefined, notRun], [{}, 1], [null]])
      expect(await problem(tp.once(...(args as Parameters<typeof tp.once>)))).toMatchObject({
        code: "INVALID_ARGUMENT",
      });
  });
});

describe("the name of the plain form", () => {
  it.each([
    ["welcome:ann@example.com", "welcome"],
    ["ann@example.com:welcome", "effect"],
    ["+49 151 1234:sms", "effect"],
    ["no-colon", "effect"],
    [":x", "effect"],
    ["a\nb:1", "effect"],
    [`${"日".repeat(60)}:1`, "effect"],
    ["a/b.c-d_e:1:2", "a/b.c-d_e"],
  ])("of %j is %s: never an address", async (key, name) => {
    const { tp, record } = world();
    await tp.once(key, () => 1);
    expect((await record(key)).name).toBe(name);
  });

  it("can be given, and is checked", async () => {
    const { tp, record } = world();
    await tp.once("k:1", () => 1, { name: "greeting" });
    expect((await record("k:1")).name).toBe("greeting");
    expect(await problem(tp.once("k:2", notRun, { name: "a\nb" }))).toMatchObject({ code: "INVALID_ARGUMENT" });
  });
});
