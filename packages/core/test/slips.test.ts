import { describe, expect, it, onTestFinished } from "vitest";
import { done, notExecuted, refused } from "../src/classify.ts";
import { defineEffect } from "../src/effect.ts";
import { testTwiceproof } from "../src/kit.ts";
import { memoryStore } from "../src/memory-store.ts";
import { createTwiceproof } from "../src/twiceproof.ts";
import { brokenConnection } from "./support/faults.ts";
import { notRun } from "./support/waiting.ts";
import { problem, world } from "./support/world.ts";

const by = { who: "ann", why: "looked it up" };

async function doubtful(made: ReturnType<typeof world>, key = "pay:1"): Promise<string> {
  const error = await problem(made.tp.once(key, () => Promise.reject(brokenConnection())));
  return error.ref ?? "";
}

describe("slips of the pen that would otherwise go unnoticed", () => {
  it("a refusal that is returned counts as thrown", async () => {
    const { tp, record } = world();
    expect(await problem(tp.once("k:1", () => refused("no money")))).toMatchObject({ code: "EFFECT_REFUSED" });
    expect(await problem(tp.once("k:2", async () => notExecuted("no order")))).toMatchObject({
      code: "EFFECT_NOT_EXECUTED",
    });
    expect([(await record("k:1")).state, (await record("k:2")).state]).toEqual(["failed", "released"]);
  });

  it("a result that cannot be kept is told when it happens: an event each time, a warning once for each name", async () => {
    const warnings: Error[] = [];
    const hear = (warning: Error): void => void warnings.push(warning);
    process.on("warning", hear);
    onTestFinished(() => void process.off("warning", hear));
    const { tp, events } = world();
    for (const key of ["slip:1", "slip:2"]) await tp.once(key, () => ({ at: () => 1 }));
    await tp.once("fact:1", () => ({ at: () => 1 }), { store: "fact" });
    await new Promise((resolve) => setImmediate(resolve));
    expect(events.filter(({ type }) => type === "result-not-kept").map(({ name }) => name)).toEqual(["slip", "slip"]);
    const ours = warnings.filter(({ name }) => name === "TwiceproofWarning");
    expect(ours).toMatchObject([{ code: "TWICEPROOF_RESULT_NOT_KEPT", message: expect.stringContaining('"slip"') }]);
  });

  it("a verdict whose result cannot be recorded is refused before it decides anything", async () => {
    const made = world();
    const ref = await doubtful(made);
    const doubt = await made.tp.doubts.get(ref);
    if (doubt === null) throw new Error("no doubt");
    expect(
      await problem(
        made.tp.doubts.resolve(
          doubt,
          done(() => 1),
          by,
        ),
      ),
    ).toMatchObject({ code: "INVALID_ARGUMENT" });
    expect((await made.record("pay:1")).state).toBe("in-doubt");
    for (const wrong of [ref, doubt.id, await problem(made.tp.once("pay:1", notRun)), null])
      expect(await problem(made.tp.doubts.resolve(wrong as never, done(1), by))).toMatchObject({
        code: "INVALID_ARGUMENT",
        message: expect.stringContaining("doubts.list()"),
      });
  });

  it("a doubt is found by the reference of its error, on whatever page, and by its id", async () => {
    const made = world();
    const refs = [];
    for (let index = 0; index < 3; index++) refs.push(await doubtful(made, `pay:${index}`));
    const found = await Promise.all(refs.map((ref) => made.tp.doubts.get(ref)));
    expect(found.map((doubt) => doubt?.key)).toEqual(["pay:0", "pay:1", "pay:2"]);
    expect(await made.tp.doubts.get(found[0]?.id ?? "")).toEqual(found[0]);
    expect(await made.tp.doubts.get("0123abcd")).toBeNull();
    expect(await problem(made.tp.doubts.get("pay:0"))).toMatchObject({ code: "INVALID_ARGUMENT" });
  });

  it.each([{ id: "ch_1" }, true, done, undefined])("reconcile that answers %o is told so", async (junk) => {
    const made = world();
    await doubtful(made);
    const again = made.tp.once<unknown>("pay:1", notRun, { reconcile: () => junk as never });
    expect(await problem(again)).toMatchObject({
      code: "EFFECT_IN_DOUBT",
      cause: { code: "INVALID_ARGUMENT", message: expect.stringContaining("done(result)") },
    });
  });

  it("misspelt options are refused", async () => {
    const { tp, asked } = world();
    const run = (): number => 1;
    const tries: (() => unknown)[] = [
      () => createTwiceproof({ store: memoryStore(), efects: [] } as never),
      () => defineEffect({ name: "x", run, reconsile: run } as never),
      () => tp.once("k:1", run, { waitms: 1 } as never),
      () => tp.once("k:1", run, { key: "k:2" } as never),
      () => tp.once(defineEffect({ name: "x", key: () => "k:1", run }), undefined, { leaseMs: 1_000 } as never),
      () => tp.withRun({ thread: "t", runid: "r" } as never, run),
      () => tp.exclusive("k", run, { leasems: 1_000 } as never),
      () => tp.doubts.list({ nmae: "x" } as never),
      () => tp.doubts.resolve({ id: "0".repeat(64), token: 1, version: 1 }, done(1), { ...by, evidnce: "x" } as never),
      () => tp.close({ grace: 1 } as never),
    ];
    for (const attempt of tries)
      expect(await problem((async () => attempt())())).toMatchObject({
        code: "INVALID_ARGUMENT",
        message: expect.stringContaining("is no option of"),
      });
    expect(asked("claim")).toHaveLength(0);
  });

  it("a body that is missing is told before anything is claimed, and the name of an effect is not its key", async () => {
    const { tp, asked } = world();
    const calls = [
      () => tp.exclusive("k", { waitMs: 1 } as never),
      () => tp.withRun({ thread: "t" }, undefined as never),
    ];
    for (const call of calls)
      expect(await problem(call())).toMatchObject({
        code: "INVALID_ARGUMENT",
        message: expect.stringContaining("function"),
      });
    expect(asked("claim")).toHaveLength(0);
    expect(() => testTwiceproof().executions("pay:1")).toThrow("not its key");
  });

  it("a store that is none says what it is", async () => {
    for (const [options, words] of [
      [undefined, "is missing"],
      [{ store: "app.db" }, "is missing"],
      [{ store: Promise.resolve(memoryStore()) }, "is a promise"],
    ] as const)
      expect(await problem((async () => createTwiceproof(options as never))())).toMatchObject({
        code: "INVALID_ARGUMENT",
        message: expect.stringContaining(words),
      });
  });

  it("the test kit knows its crash points, and waits for no settleDelayMs", async () => {
    const kit = testTwiceproof();
    await expect(kit.crash("before-rekord" as never, notRun)).rejects.toThrow("before-record");
    const pay = (): Promise<unknown> =>
      kit.tp.once<unknown>("pay:1", () => "paid", {
        settleDelayMs: 3_600_000,
        reconcile: () => ({ answer: "not-done", authoritative: true }),
      });
    await kit.crash("before-record", pay);
    kit.lapse();
    expect(await pay()).toBe("paid");
    expect(kit.executions("pay")).toBe(2);
    await kit.close();
  });
});
