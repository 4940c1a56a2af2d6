import { describe, expect, it, onTestFinished, vi } from "vitest";
import { z } from "zod";
import { type Answer, notDone, notExecuted, oneRequest, refused } from "../src/classify.ts";
import { defineEffect, type EffectRules } from "../src/effect.ts";
import { isInDoubt, TwiceproofError } from "../src/errors.ts";
import { createTwiceproof } from "../src/twiceproof.ts";
import { brokenConnection } from "./support/faults.ts";
import { gate, notRun, rejection, until } from "./support/waiting.ts";
import { problem, type World, world } from "./support/world.ts";

const by = { who: "ann", why: "looked it up" };
const trap = (): never => {
  throw new RangeError("from the trap");
};

describe("what a body throws or returns", () => {
  it.each<readonly [string, () => unknown]>([
    ["a message that throws", () => Object.defineProperty(new Error(), "message", { get: trap })],
    ["a name that is a symbol", () => Object.assign(new Error("m"), { name: Symbol("s") })],
    ["a message whose toString throws", () => Object.assign(new Error(), { message: { toString: trap } })],
    ["a message without a prototype", () => Object.assign(new Error(), { message: Object.create(null) })],
    ["a cause that throws", () => Object.defineProperty(new Error(), "cause", { get: trap })],
    ["a prototype that throws", () => new Proxy(new Error("x"), { getPrototypeOf: trap })],
    ["traps that all throw", () => new Proxy({}, { get: trap, has: trap, getPrototypeOf: trap, ownKeys: trap })],
  ])("19: an error with %s leaves the effect in doubt, given up and noted", async (_, make) => {
    const { tp, record, history } = world();
    const code = tp.once("k:1", () => Promise.reject(make())).catch((error) => error.code);
    expect(await code).toBe("EFFECT_IN_DOUBT");
    expect(await record("k:1")).toMatchObject({ state: "in-doubt", abandoned: true });
    expect((await history("k:1")).map(({ what }) => what)).toEqual(["abandoned"]);
  });

  it("a reason that is no text, or is a whole response, is recorded as a short one", async () => {
    const cyclic: Record<string, unknown> = {};
    cyclic.self = cyclic;
    for (const [index, why] of [cyclic, 10n, new Error("boom"), undefined, "x".repeat(200_000), "\ud800"].entries()) {
      const { tp, record } = world();
      const refusal = `refuse:${index}`;
      expect(await problem(tp.once(refusal, () => Promise.reject(refused(why as string))))).toMatchObject({
        code: "EFFECT_REFUSED",
      });
      expect((await problem(tp.once(refusal, notRun))).code).toBe("EFFECT_REFUSED");
      const release = tp.once("release:1", () => Promise.reject(notExecuted(why as string)));
      expect(await problem(release)).toMatchObject({ code: "EFFECT_NOT_EXECUTED" });
      expect([(await record(refusal)).state, (await record("release:1")).state]).toEqual(["failed", "released"]);
      expect((await record(refusal)).payload?.text.length).toBeLessThan(2_100);
    }
  });

  it.each(["has", "getPrototypeOf", "ownKeys", "getOwnPropertyDescriptor"] as const)(
    "7: a result whose `%s` throws is given back and on record, not in doubt",
    async (name) => {
      vi.spyOn(process, "emitWarning").mockReturnValue(undefined);
      onTestFinished(() => void vi.restoreAllMocks());
      const { tp, record } = world();
      const result = await tp.once<{ id?: number }>("k:1", () => new Proxy({ id: 1 }, { [name]: trap }));
      expect(result.id).toBe(1);
      expect((await record("k:1")).state).toBe("completed");
    },
  );

  it("a generator function is refused before the claim: nothing has happened when it returns", async () => {
    const { tp, asked } = world();
    const bodies = [
      function* () {
        yield 1;
      },
      async function* () {
        yield 1;
      },
    ];
    for (const run of bodies) {
      const effect = defineEffect<undefined, unknown>({ name: "lazy", key: () => "k:2", run });
      for (const call of [tp.once<unknown>("k:1", run), tp.once(effect, undefined)])
        expect(await problem(call)).toMatchObject({ code: "INVALID_ARGUMENT" });
    }
    expect(asked("claim")).toHaveLength(0);
  });

  it("17: a store that is read-only for a moment after the effect has its record when that has passed", async () => {
    const { tp, around, record, executions } = world();
    let failures = 0;
    around("settle", (pass) =>
      ++failures <= 3 ? Promise.reject(new TwiceproofError("STORE_READ_ONLY", "Remounted.")) : pass(),
    );
    expect(await tp.once("k:1", () => "receipt")).toBe("receipt");
    expect([failures, (await record("k:1")).state, executions()]).toEqual([4, "completed", 1]);
  });
});

describe("19: an outer effect that says notExecuted", () => {
  it("is in doubt while a call that it made still checks its input", async () => {
    const { tp, record } = world();
    const { opened, open } = gate();
    const slow = { version: 1, vendor: "test", validate: (value: unknown) => opened.then(() => ({ value })) } as const;
    const effect = defineEffect({
      name: "inner",
      input: { "~standard": slow },
      key: () => "inner:1",
      run: () => "ran",
    });
    let inner: Promise<unknown> = Promise.resolve();
    const outer = tp.once("outer:1", () => {
      inner = tp.once(effect, {});
      throw notExecuted("nothing was sent");
    });
    expect(await problem(outer)).toMatchObject({ code: "EFFECT_IN_DOUBT" });
    open();
    expect(await inner).toBe("ran");
    expect((await record("outer:1")).state).toBe("in-doubt");
  });

  it.each<readonly [string, Error]>([
    ["notExecuted", notExecuted("the caller is gone")],
    ["a refused connection", Object.assign(new Error("x"), { code: "ECONNREFUSED", syscall: "connect" })],
  ])("is in doubt when it only passes on why an inner call was called off: %s", async (_, reason) => {
    const { tp, record } = world();
    const signal = AbortSignal.abort(reason);
    const outer = tp.once("outer:1", () => tp.once("inner:1", notRun, { signal }), { classify: oneRequest });
    expect(await problem(outer)).toMatchObject({ code: "EFFECT_IN_DOUBT", cause: reason });
    expect((await record("outer:1")).state).toBe("in-doubt");
  });

  it("is in doubt when another copy of the package did something inside, and neither waits for itself", async () => {
    vi.resetModules();
    const copy = await import("../src/twiceproof.ts");
    expect(copy.createTwiceproof).not.toBe(createTwiceproof);
    const { tp, store, record } = world();
    const other = copy.createTwiceproof({ store });
    const outer = tp.once("outer:1", async () => {
      await other.once("inner:1", () => "charged");
      throw notExecuted("the second step was not sent");
    });
    expect(await problem(outer)).toMatchObject({ code: "EFFECT_IN_DOUBT" });
    const declined = Object.assign(new Error("x"), { status: 402 });
    const read = (): Promise<unknown> => other.once("balance:1", () => Promise.reject(declined), { kind: "read" });
    await rejection(tp.once("outer:2", read, { classify: oneRequest }));
    expect([(await record("outer:1")).state, (await record("outer:2")).state]).toEqual(["in-doubt", "in-doubt"]);
    const own = tp.once("self:1", () => other.once("self:1", notRun, { waitMs: 2_000 }).catch((error) => error.code));
    expect(await own).toBe("WAITS_FOR_ITSELF");
  });
});

describe("reconcile", () => {
  it("18: does not end the doubt of a living holder, which the store's clock made by a step ahead", async () => {
    const { tp, worker, advance, asked, executions } = world();
    const charges: number[] = [];
    const { opened, open } = gate();
    const holder = tp.once("pay:1", ({ token }) => opened.then(() => charges.push(token)), { leaseMs: 1_000 });
    await until(() => executions() === 1);
    advance(60_000);
    const answers: string[] = [];
    const reconcile = (): Answer<number> => {
      const answer: Answer<number> = charges.length === 0 ? notDone({ authoritative: true }) : { answer: "unknown" };
      answers.push(answer.answer);
      return answer;
    };
    const rules = { reconcile, settleDelayMs: 20, leaseMs: 1_000, waitMs: 4_000 };
    const second = worker().once("pay:1", ({ token }) => charges.push(token), rules);
    await until(() => asked("renew").length > 0);
    open();
    expect(await Promise.all([holder, second])).toEqual([1, 1]);
    expect([charges, answers]).toEqual([[1], ["not-done"]]);
  });

  it("that calls its own effect is told that it waits for itself, and is not asked again and again", async () => {
    const { tp } = world();
    let asked = 0;
    const ask = (): Promise<unknown> => tp.once<unknown>("k:1", () => Promise.reject(brokenConnection()), rules);
    const rules: EffectRules<unknown, unknown> = {
      waitMs: 300,
      reconcile: async () => {
        asked++;
        return (await ask()) as never;
      },
    };
    const error = await problem(ask());
    expect(error.code).toBe("EFFECT_IN_DOUBT");
    const again = await problem(ask());
    expect(again).toMatchObject({ code: "EFFECT_IN_DOUBT", cause: { code: "WAITS_FOR_ITSELF" } });
    expect(asked).toBe(2);
  });
});

describe("doubts", () => {
  async function only({ tp }: World) {
    const [doubt] = (await tp.doubts.list()).doubts;
    if (doubt === undefined) throw new Error("there is no doubt");
    return doubt;
  }

  it("4: say that they are disputed when an earlier attempt completes late, and take no verdict from before", async () => {
    const made = world();
    const { tp, advance, executions, elsewhere } = made;
    const { opened, open } = gate();
    const first = tp.once("pay:1", () => opened.then(() => "charged"));
    await until(() => executions() === 1);
    advance(60_000);
    expect(await tp.doubts.resolve(await only(made), notDone(), by)).toBe("applied");
    await rejection(elsewhere(() => tp.once("pay:1", () => Promise.reject(brokenConnection()))));
    const before = await only(made);
    expect(before).toMatchObject({ token: 2, disputed: false });
    open();
    expect(await problem(first)).toMatchObject({ code: "EFFECT_IN_DOUBT", value: "charged" });
    expect(await only(made)).toMatchObject({ token: 2, disputed: true });
    expect(await tp.doubts.resolve(before, notDone(), by)).toBe("stale");
    const asked = tp.once<unknown>("pay:1", notRun, { reconcile: () => notDone({ authoritative: true }) });
    expect(await problem(asked)).toMatchObject({ code: "EFFECT_IN_DOUBT" });
  });

  it("of another namespace are none, also for those who know an id", async () => {
    const made = world({ namespace: "prod" });
    await rejection(made.tp.once("k:1", () => Promise.reject(brokenConnection())));
    const doubt = await only(made);
    const test = made.worker({ namespace: "test" });
    expect([await test.doubts.get(doubt.id), await test.doubts.get(doubt.ref)]).toEqual([null, null]);
    expect(await test.doubts.history(doubt.id)).toEqual([]);
    expect(await test.doubts.resolve(doubt, notDone(), by)).toBe("stale");
    expect(await made.tp.doubts.history(doubt.id)).toHaveLength(1);
    expect(await made.tp.doubts.resolve(doubt, notDone(), by)).toBe("applied");
  });

  it("isInDoubt stands in catch blocks, and throws at no error", () => {
    expect(isInDoubt(Object.defineProperty(new Error(), "cause", { get: trap }))).toBe(false);
    expect(isInDoubt(new Proxy({}, { has: trap, get: trap }))).toBe(false);
    const many: object[] = Array.from({ length: 200_000 }, () => ({}));
    expect(isInDoubt(new AggregateError(many))).toBe(false);
    many.push(new TwiceproofError("EFFECT_IN_DOUBT", "It may have happened."));
    expect(isInDoubt(new AggregateError(many))).toBe(true);
    expect(isInDoubt(new AggregateError([new Proxy({}, { has: trap }), many.at(-1)]))).toBe(true);
  });
});

describe("what an effect is called with", () => {
  it("counts as it was at the moment of the call, whatever its owner does to it later", async () => {
    const { tp } = world();
    const ran: number[] = [];
    const run = async ({ id }: { id: number; cents: number }): Promise<number> => ran.push(id);
    const pay = defineEffect({ name: "pay", key: ({ id }) => `order:${id}`, run });
    const reused = { id: 0, cents: 1 };
    const calls = [1, 2, 3].map((id) => {
      reused.id = id;
      return tp.once(pay, reused).catch(({ code }) => code);
    });
    // None passes for another: whoever did not run is told.
    const answers = await Promise.all(calls);
    expect(answers.filter((answer) => answer !== "EFFECT_KEY_REUSED")).toHaveLength(ran.length);
    const changed = { id: 9, cents: 100 };
    const call = tp.once(pay, changed);
    changed.cents = 999;
    expect(await tp.once(pay, { id: 9, cents: 100 })).toBe(await call);
    expect(await problem(tp.once(pay, { id: 9, cents: 999 }))).toMatchObject({ code: "EFFECT_KEY_REUSED" });
  });

  it("is not repeated in messages where a property is called after an address; a name is", async () => {
    const { tp } = world();
    const schema = z.object({ to: z.record(z.string(), z.number()) });
    const mail = defineEffect({ name: "mail", input: schema, key: () => "k", run: notRun });
    const to = { "ana@example.com": "x", [`4111 1111 ${"1".repeat(90_000)}`]: "x", first_name: "x" };
    const error = await problem(tp.once(mail, { to } as never));
    expect(error).toMatchObject({ code: "INVALID_INPUT" });
    expect(error.message).toContain("input.to.first_name");
    expect(error.message).not.toMatch(/ana|example|1111/);
    expect(error.message.length).toBeLessThan(200);
    for (const [key, told] of [
      ["ana@example.com", "`input.to[…]` is a function"],
      ["first_name", "`input.to.first_name` is a function"],
    ] as const)
      await expect(tp.once("k:2", notRun, { input: { to: { [key]: () => 1 } } })).rejects.toThrow(told);
  });

  it("and whose key is async is told so, and ends no process", async () => {
    const rejections: unknown[] = [];
    const note = (reason: unknown): void => void rejections.push(reason);
    process.on("unhandledRejection", note);
    onTestFinished(() => void process.off("unhandledRejection", note));
    const { tp, asked } = world();
    const key = (async () => trap()) as never;
    expect(await problem(tp.once(defineEffect({ name: "e", key, run: notRun }), 1))).toMatchObject({
      code: "INVALID_ARGUMENT",
    });
    await new Promise((resolve) => setImmediate(resolve));
    expect([rejections, asked("claim")]).toEqual([[], []]);
  });
});
