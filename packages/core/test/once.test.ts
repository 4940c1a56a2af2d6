import { describe, expect, expectTypeOf, it } from "vitest";
import { notExecuted, oneRequest, refused } from "../src/classify.ts";
import { defineEffect } from "../src/effect.ts";
import { isInDoubt, isKeyReused, isNotExecuted, isRefused, isRunning } from "../src/errors.ts";
import { brokenConnection, never } from "./support/faults.ts";
import { gate, notRun, rejection, until } from "./support/waiting.ts";
import { problem, world } from "./support/world.ts";

const fast = { leaseMs: 1_000 };

describe("a result", () => {
  it("7: the first caller gets it in the very form that later callers get", async () => {
    const { tp, executions } = world();
    const made = { z: 1, at: new Date(0), a: [new Map([[1, new Set("a")]])], list: [undefined, 2], big: 10n };
    const first = await tp.once("k:1", () => made);
    const again = await tp.once("k:1", notRun);
    expect(again).toEqual(first);
    expect(Object.keys(first)).toEqual(Object.keys(again));
    expect(first.at).toEqual(new Date(0));
    expect(first).not.toBe(made);
    expect(executions()).toBe(1);
  });

  it("7: what the first caller does to it does not show up later", async () => {
    const { tp } = world();
    const first = await tp.once("k:1", () => ({ list: [1] }));
    first.list.push(2);
    const second = await tp.once("k:1", (): typeof first => notRun());
    second.list.push(3);
    expect(await tp.once("k:1", (): typeof first => notRun())).toEqual({ list: [1] });
  });

  it.each([undefined, null, 0, "", false, [], Number.NaN, -0])("7: %s comes back as itself", async (value) => {
    const { tp } = world();
    expect(await tp.once("k:1", () => value)).toStrictEqual(value);
    expect(await tp.once("k:1", notRun)).toStrictEqual(value);
  });

  it.each([
    ["cannot be encoded", () => ({ call: () => undefined }), {}],
    ["is over the cap", () => "x".repeat(200), { maxResultBytes: 100 }],
  ])("7: one that %s is given to the first, and later callers are told that it is gone", async (_, body, cap) => {
    const { tp, record, executions } = world(cap);
    const made = body();
    expect(await tp.once("k:1", () => made)).toBe(made);
    expect(await record("k:1")).toMatchObject({ state: "completed", payload: null });
    for (const _time of [1, 2])
      expect(await problem(tp.once("k:1", notRun))).toMatchObject({ code: "EFFECT_RESULT_UNAVAILABLE", status: 409 });
    expect(executions()).toBe(1);
  });

  it("7: `store: fact` keeps that it happened, and not the result", async () => {
    const { tp, record } = world();
    expect(await tp.once("k:1", () => ({ secret: "s" }), { store: "fact" })).toEqual({ secret: "s" });
    expect((await record("k:1")).payload).toBeNull();
    expect(await problem(tp.once("k:1", notRun, { store: "fact" }))).toMatchObject({
      code: "EFFECT_RESULT_UNAVAILABLE",
    });
  });
});

describe("callers at the same time", () => {
  it("1: in one process, one executes and all get its result", async () => {
    const { tp, executions } = world();
    const results = await Promise.all(Array.from({ length: 20 }, (_, n) => tp.once("k:1", async () => ({ n }))));
    expect(new Set(results.map(({ n }) => n)).size).toBe(1);
    expect(executions()).toBe(1);
  });

  it("1: in two workers, one executes and both get its result", async () => {
    const { tp, worker, record } = world();
    const calls = [tp, worker()].flatMap((each) =>
      [1, 2, 3].map(() => each.once("k:1", async () => ({ drawn: Math.random() }))),
    );
    const results = await Promise.all(calls);
    expect(new Set(results.map(({ drawn }) => drawn)).size).toBe(1);
    expect((await record("k:1")).token).toBe(1);
  });

  it("wait no longer than waitMs, and are told when to ask again", async () => {
    const { tp, worker, executions } = world();
    const { opened, open } = gate();
    const first = tp.once("k:1", () => opened);
    await until(() => executions() === 1);
    const error = await problem(worker().once("k:1", notRun, { waitMs: 60 }));
    expect(error).toMatchObject({ code: "EFFECT_RUNNING", holder: { liveness: "live", state: "claimed" } });
    expect(error.retryAfterMs).toBeGreaterThanOrEqual(1_000);
    expect(error.retryAfterMs).toBeLessThanOrEqual(10_000);
    expect(isRunning(new Error("wrapped", { cause: error }))).toBe(true);
    open();
    await first;
  });

  it("stop waiting when their signal aborts", async () => {
    const { tp, worker, asked, executions } = world();
    const { opened, open } = gate();
    const first = tp.once("k:1", () => opened);
    await until(() => executions() === 1);
    const controller = new AbortController();
    const reason = new Error("the client went away");
    const second = rejection(worker().once("k:1", notRun, { signal: controller.signal }));
    const third = rejection(tp.once("k:1", notRun, { signal: controller.signal }));
    await until(() => asked("get").length > 0);
    controller.abort(reason);
    expect(await second).toBe(reason);
    expect(await third).toBe(reason);
    open();
    await first;
  });

  it("stop waiting when the signal of their run aborts", async () => {
    const { tp, worker, asked, executions } = world();
    const { opened, open } = gate();
    const first = worker().once("k:1", () => opened);
    const controller = new AbortController();
    const reason = new Error("the client went away");
    const run = rejection(
      tp.withRun({ thread: "t", signal: controller.signal }, (run) => run.once("k:1", notRun, { waitMs: 20_000 })),
    );
    await until(() => asked("get").length > 0);
    controller.abort(reason);
    expect(await run).toBe(reason);
    open();
    await first;
    expect(executions()).toBe(0);
  });
});

describe("a key that stands for something else", () => {
  const charge = (name: string) => defineEffect({ name, key: () => "order:1", run: (_: { cents: number }) => "paid" });

  it("is refused: other input, other name, whatever the state of the first", async () => {
    const { tp, advance, executions } = world();
    const { opened, open } = gate();
    const reused = async (): Promise<void> => {
      expect(await problem(tp.once(charge("charge"), { cents: 2 }))).toMatchObject({ code: "EFFECT_KEY_REUSED" });
      expect(isKeyReused(await rejection(tp.once(charge("refund"), { cents: 1 })))).toBe(true);
    };
    const first = tp.once({ ...charge("charge"), ...fast, run: () => opened.then(() => "paid") }, { cents: 1 });
    await until(() => executions() === 1);
    await reused();
    advance(1_001);
    await reused();
    open();
    expect(await first).toBe("paid");
    await reused();
    expect(executions()).toBe(1);
  });

  it("is refused also when the first one was released, or refused for good", async () => {
    const { tp } = world();
    for (const [key, thrown] of [
      ["k:1", notExecuted("no")],
      ["k:2", refused("no")],
    ] as const) {
      const threw = tp.once(key, () => Promise.reject(thrown), { input: 1 });
      await rejection(threw);
      expect(await problem(tp.once(key, notRun, { input: 2 }))).toMatchObject({ code: "EFFECT_KEY_REUSED" });
    }
  });
});

describe("a throw", () => {
  it("19: leaves the effect in doubt, and nothing runs again", async () => {
    const { tp, record, executions } = world();
    const thrown = new Error("a validation error on the response");
    const error = await problem(tp.once("k:1", () => Promise.reject(thrown)));
    expect(error).toMatchObject({ code: "EFFECT_IN_DOUBT", cause: thrown });
    expect(await record("k:1")).toMatchObject({ state: "in-doubt", abandoned: true });
    expect(isInDoubt(await rejection(tp.once("k:1", notRun)))).toBe(true);
    expect(executions()).toBe(1);
  });

  it("stands in the history, short, and as text that every store takes", async () => {
    const { tp, history } = world();
    const message = `\0${"x".repeat(291)}${"\u{1f4b3}".repeat(9)}`;
    await rejection(tp.once("k:1", () => Promise.reject(new Error(message))));
    const why = (await history("k:1"))[0]?.why ?? "";
    expect(why).toContain("Error: x");
    expect(why.length).toBeLessThanOrEqual(300);
    expect(why.isWellFormed() && !why.includes("\0")).toBe(true);
  });

  it("19: a refused connection of the second of two requests leaves it in doubt", async () => {
    const { tp, record } = world();
    const thrown = Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED", syscall: "connect" });
    const charged: string[] = [];
    const twoRequests = async (): Promise<void> => {
      charged.push("once");
      throw thrown;
    };
    expect(isInDoubt(await rejection(tp.once("k:1", twoRequests)))).toBe(true);
    expect(isInDoubt(await rejection(tp.once("k:1", twoRequests)))).toBe(true);
    expect(charged).toEqual(["once"]);
    expect((await record("k:1")).state).toBe("in-doubt");
  });

  it("19: notExecuted releases; the next call runs with a higher token and the same idempotency key", async () => {
    const { tp } = world();
    const seen: { idempotencyKey: string; token: number }[] = [];
    const error = await problem(
      tp.once("k:1", ({ idempotencyKey, token }) => {
        seen.push({ idempotencyKey, token });
        throw notExecuted("the card reader is off");
      }),
    );
    expect(error).toMatchObject({ code: "EFFECT_NOT_EXECUTED" });
    expect(error.message).toContain("the card reader is off");
    expect(isNotExecuted(error)).toBe(true);
    await tp.once("k:1", ({ idempotencyKey, token }) => void seen.push({ idempotencyKey, token }));
    expect(seen.map(({ token }) => token)).toEqual([1, 2]);
    expect(seen[0]?.idempotencyKey).toBe(seen[1]?.idempotencyKey);
    expect(seen[0]?.idempotencyKey).toMatch(/^[0-9a-f-]{36}$/);
  });

  it("refused is recorded: later callers are told the same reason, until somebody reopens it", async () => {
    const { tp, record } = world();
    const first = await problem(tp.once("k:1", () => Promise.reject(refused("the card was stolen"))));
    const second = await problem(tp.once("k:1", notRun));
    for (const error of [first, second]) {
      expect(error).toMatchObject({ code: "EFFECT_REFUSED" });
      expect(error.message).toBe(first.message);
      expect(isRefused(error)).toBe(true);
    }
    expect(await tp.doubts.reopen(await record("k:1"), { who: "ann", why: "a new card" })).toBe("applied");
    expect(await tp.once("k:1", ({ token }) => token)).toBe(2);
  });

  it("with oneRequest: a connection never made releases, a 4xx refuses, a lost answer is in doubt", async () => {
    const { tp, record } = world();
    const throwing = (key: string, error: object) =>
      problem(tp.once(key, () => Promise.reject(error), { classify: oneRequest }));
    const unmade = Object.assign(new Error("connect"), { code: "ECONNREFUSED", syscall: "connect" });
    expect(await throwing("k:1", unmade)).toMatchObject({ code: "EFFECT_NOT_EXECUTED", cause: unmade });
    expect(await throwing("k:2", Object.assign(new Error("402"), { status: 402 }))).toMatchObject({
      code: "EFFECT_REFUSED",
    });
    expect(await throwing("k:3", brokenConnection())).toMatchObject({ code: "EFFECT_IN_DOUBT" });
    expect(await throwing("k:4", Object.assign(new Error("409"), { status: 409 }))).toMatchObject({
      code: "EFFECT_IN_DOUBT",
    });
    expect((await record("k:1")).state).toBe("released");
  });

  it.each([undefined, null, "text", 0, Object.freeze({})])("of %s is a throw like any other", async (thrown) => {
    const { tp } = world();
    expect(isInDoubt(await rejection(tp.once("k:1", () => Promise.reject(thrown))))).toBe(true);
    expect(
      isInDoubt(
        await rejection(
          tp.once("k:2", () => {
            throw thrown;
          }),
        ),
      ),
    ).toBe(true);
  });

  it("4: a refusal that comes after a verdict is not told: the record is", async () => {
    const { tp, record, history, advance } = world();
    const value = await tp.once(
      "k:1",
      async () => {
        advance(1_001);
        const [doubt] = (await tp.doubts.list()).doubts;
        await tp.doubts.resolve(doubt as never, { answer: "done", result: "seen" }, { who: "ann", why: "saw it" });
        throw refused("no");
      },
      fast,
    );
    expect(value).toBe("seen");
    expect((await record("k:1")).state).toBe("completed");
    expect((await history("k:1")).map(({ what }) => what)).toEqual(["verdict-completed", "late-failed"]);
  });
});

describe("a kind", () => {
  it("read is passed through: nothing is claimed or recorded, and it runs each time", async () => {
    const { tp, asked } = world();
    let runs = 0;
    const look = defineEffect({
      name: "look",
      kind: "read",
      run: (id: string, { idempotencyKey }) => `${id}${++runs}${idempotencyKey.length}`,
    });
    expect(await tp.once(look, "x")).toBe("x136");
    expect(await tp.once(look, "x")).toBe("x236");
    expect(await tp.once("anything", () => ++runs, { kind: "read" })).toBe(3);
    await expect(
      tp.once("anything", () => Promise.reject(new RangeError("as it is")), { kind: "read" }),
    ).rejects.toThrow(RangeError);
    expect(asked("claim")).toHaveLength(0);
  });

  it("read gets the signal of its run", async () => {
    const { tp } = world();
    const controller = new AbortController();
    await tp.withRun({ thread: "t", signal: controller.signal }, async (run) => {
      controller.abort();
      expect(await run.once("anything", ({ signal }) => signal.aborted, { kind: "read" })).toBe(true);
    });
  });

  it("idempotent: its own throw is passed on as it is, and the next call runs it again", async () => {
    const { tp, record } = world();
    const thrown = new Error("a time-out");
    expect(await rejection(tp.once("k:1", () => Promise.reject(thrown), { kind: "idempotent" }))).toBe(thrown);
    expect((await record("k:1")).state).toBe("in-doubt");
    expect(await tp.once("k:1", ({ token }) => token, { kind: "idempotent" })).toBe(2);
  });

  it("idempotent: runs again after a crash, and not while it lives", async () => {
    const { tp, worker, advance, record } = world();
    void tp.once("k:1", () => never(), { kind: "idempotent", leaseMs: 60_000 });
    await until(async () => (await record("k:1").catch(() => null)) !== null);
    expect(await problem(worker().once("k:1", notRun, { kind: "idempotent", waitMs: 20 }))).toMatchObject({
      code: "EFFECT_RUNNING",
    });
    advance(60_001);
    expect(await worker().once("k:1", () => "again", { kind: "idempotent" })).toBe("again");
  });
});

describe("a caller's abort", () => {
  it("before the claim: nothing is claimed", async () => {
    const { tp, asked } = world();
    const reason = new Error("gone");
    expect(await rejection(tp.once("k:1", notRun, { signal: AbortSignal.abort(reason) }))).toBe(reason);
    expect(asked("claim")).toHaveLength(0);
  });

  it("19: between the claim and the body: released, and the body is not entered", async () => {
    const { tp, around, record, executions } = world();
    const controller = new AbortController();
    const reason = new Error("gone");
    around("claim", async (pass) => {
      const answers = await pass();
      controller.abort(reason);
      return answers;
    });
    expect(await rejection(tp.once("k:1", notRun, { signal: controller.signal }))).toBe(reason);
    expect((await record("k:1")).state).toBe("released");
    expect(executions()).toBe(0);
  });

  it("during the body: the body is told, and what it returns is recorded and given back", async () => {
    const { tp, record } = world();
    const controller = new AbortController();
    const reason = new Error("gone");
    const value = await tp.once(
      "k:1",
      ({ signal }) => {
        controller.abort(reason);
        return signal.reason === reason && "done all the same";
      },
      { signal: controller.signal },
    );
    expect(value).toBe("done all the same");
    expect((await record("k:1")).state).toBe("completed");
  });

  it("during a body that throws because of it: the caller is told of the doubt, also when reconcile fails", async () => {
    const { tp } = world();
    const controller = new AbortController();
    const error = await problem(
      tp.once<unknown>(
        "k:1",
        ({ signal }) => {
          controller.abort(new Error("gone"));
          throw signal.reason;
        },
        { signal: controller.signal, reconcile: () => Promise.reject(brokenConnection()) },
      ),
    );
    expect(error).toMatchObject({ code: "EFFECT_IN_DOUBT" });
  });
});

describe("the types", () => {
  it("follow from the body, the schema and the effect", () => {
    const { tp } = world();
    const charge = defineEffect({ name: "charge", run: (input: { cents: number }) => ({ id: `${input.cents}` }) });
    const typed = async (): Promise<void> => {
      expectTypeOf(await tp.once("k:1", () => 1)).toEqualTypeOf<number>();
      expectTypeOf(await tp.once("k:1", async () => ["a"])).toEqualTypeOf<string[]>();
      expectTypeOf(await tp.once(charge, { cents: 1 })).toEqualTypeOf<{ id: string }>();
      // @ts-expect-error: cents is a number
      await tp.once(charge, { cents: "1" });
      // @ts-expect-error: an effect needs its input
      await tp.once(charge);
      await tp.withRun({ thread: "t" }, async (run) => {
        expectTypeOf(await run.once(charge, { cents: 1 })).toEqualTypeOf<{ id: string }>();
      });
      expectTypeOf(await tp.exclusive("k", ({ token }) => token)).toEqualTypeOf<number>();
    };
    expectTypeOf(typed).returns.toEqualTypeOf<Promise<void>>();
  });
});
