import { afterEach, describe, expect, it, vi } from "vitest";
import { done } from "../src/classify.ts";
import { defineEffect } from "../src/effect.ts";
import { type CrashPoint, testTwiceproof } from "../src/kit.ts";
import { gate, notRun, rejection, until } from "./support/waiting.ts";
import { problem } from "./support/world.ts";

afterEach(() => {
  vi.useRealTimers();
});

describe("a crash", () => {
  it.each<readonly [CrashPoint, number, "value" | "EFFECT_IN_DOUBT"]>([
    ["before-claim", 0, "value"],
    ["after-claim", 0, "EFFECT_IN_DOUBT"],
    ["before-record", 1, "EFFECT_IN_DOUBT"],
    ["after-record", 1, "value"],
  ])("%s: the body ran %i times, and the next worker finds %s", async (point, ran, found) => {
    const { tp, crash, lapse, executions, close } = testTwiceproof();
    const heard: unknown[] = [];
    const call = (): Promise<string> => tp.once("pay:1", () => "value");
    await crash(point, () => call().then((value) => heard.push(value)));
    expect(executions("pay")).toBe(ran);
    lapse();
    expect(await call().catch((error: { code: string }) => error.code)).toBe(found);
    expect(executions("pay")).toBe(found === "value" && point === "before-claim" ? 1 : ran);
    expect(heard).toEqual([]);
    await close();
  });

  it("leaves a claim that lives until its lease is over", async () => {
    const { tp, crash, advance, close } = testTwiceproof();
    const call = (): Promise<string> => tp.once("pay:1", () => "value", { leaseMs: 30_000, waitMs: 0 });
    await crash("after-claim", call);
    expect(await problem(call())).toMatchObject({ code: "EFFECT_RUNNING" });
    advance(29_000);
    expect(await problem(call())).toMatchObject({ code: "EFFECT_RUNNING" });
    advance(1_100);
    expect(await problem(call())).toMatchObject({ code: "EFFECT_IN_DOUBT" });
    await close();
  });

  it("is a way to show that an effect with reconcile survives it", async () => {
    const sent: string[] = [];
    const mail = defineEffect({
      name: "mail",
      key: (to: string) => to,
      run: (to: string) => sent.push(to),
      reconcile: (to) => done(sent.indexOf(to) + 1),
    });
    const { tp, crash, lapse, executions, close } = testTwiceproof({ effects: [mail] });
    await crash("before-record", () => tp.once(mail, "ann"));
    lapse();
    expect(await tp.once(mail, "ann")).toBe(1);
    expect(sent).toEqual(["ann"]);
    expect(executions("mail")).toBe(1);
    await close();
  });

  it("inside of a run leaves the thread held until the lease is over", async () => {
    const { tp, crash, lapse, executions, close } = testTwiceproof();
    const pass = (): Promise<string> => tp.withRun({ thread: "t" }, (run) => run.once("pay:1", () => "value"));
    await crash("before-record", pass);
    expect(await problem(tp.withRun({ thread: "t" }, notRun))).toMatchObject({ code: "THREAD_BUSY" });
    lapse();
    expect(await problem(pass())).toMatchObject({ code: "EFFECT_IN_DOUBT" });
    expect(executions("pay")).toBe(1);
    await close();
  });

  it("inside of a run that has an id counts the run's effects, and not what is remembered of the run", async () => {
    const { tp, crash, lapse, executions, close } = testTwiceproof();
    const options = { thread: "t", runId: "r" };
    const pass = (): Promise<string> => tp.withRun(options, (run) => run.once("pay:1", () => "value"));
    await crash("after-record", pass);
    expect(await tp.threads.get("t")).toMatchObject({ runId: "r", state: "claimed" });
    lapse();
    expect(await pass()).toBe("value");
    expect(await tp.withRun(options, notRun)).toBe("value");
    expect(executions("pay")).toBe(1);
    for (const point of ["after-claim", "before-record"] as const) {
      const other = { thread: "t", runId: point };
      await expect(crash(point, () => tp.withRun(other, (run) => run.once("pay:1", notRun)))).rejects.toThrow(
        "before it reached",
      );
    }
    await close();
  });

  it("hands out threads that can be stopped and unlocked", async () => {
    const { tp, close } = testTwiceproof();
    const by = { who: "ana", why: "test" };
    await tp.withRun({ thread: "t", runId: "r" }, async ({ signal }) => {
      expect(await tp.threads.cancel("t", { ...by, runId: "r" })).toBe("requested");
      await until(() => signal.aborted);
      expect(await tp.threads.unlock("t", { ...by, token: 2 })).toBe("stale");
    });
    await close();
  });

  it("is final: what the dead worker left over never comes back to life", async () => {
    const { tp, crash, lapse, executions, close } = testTwiceproof();
    const { opened, open } = gate();
    const leftOver: unknown[] = [];
    await crash("after-claim", () => {
      void opened.then(() => tp.once("pay:2", () => "again")).then((value) => leftOver.push(value));
      void opened.then(() => tp.doubts.list()).then((value) => leftOver.push(value));
      return tp.once("pay:1", () => "value");
    });
    lapse();
    open();
    expect(await tp.once("pay:2", () => "mine")).toBe("mine");
    expect(await problem(tp.once("pay:1", notRun))).toMatchObject({ code: "EFFECT_IN_DOUBT" });
    expect(leftOver).toEqual([]);
    expect(executions("pay")).toBe(1);
    await close();
  });

  it("can happen to worker after worker", async () => {
    const { tp, crash, lapse, executions, close } = testTwiceproof();
    const call = (): Promise<number> => tp.once("pay:1", ({ token }) => token, { kind: "idempotent" });
    for (const point of ["before-record", "after-claim", "before-record"] as const) {
      await crash(point, call);
      lapse();
    }
    expect(await call()).toBe(4);
    expect(executions("pay")).toBe(3);
    await close();
  });

  it("whose point is not reached is an error, and the worker lives on", async () => {
    const { tp, crash, close } = testTwiceproof();
    expect(await rejection(crash("before-record", () => "nothing"))).toMatchObject({
      message: expect.stringContaining("before-record"),
    });
    const thrown = new RangeError("the test's own");
    expect(await rejection(crash("after-claim", () => Promise.reject(thrown)))).toBe(thrown);
    expect(
      await rejection(
        crash("after-claim", () => {
          throw thrown;
        }),
      ),
    ).toBe(thrown);
    expect(await tp.once("pay:1", () => "value")).toBe("value");
    await close();
  });
});

describe("the kit", () => {
  it("hands events on, and counts each name by itself", async () => {
    const types: string[] = [];
    const { tp, executions, close } = testTwiceproof({
      // Its rejection, unhandled, would fail this run.
      onEvent: async ({ type }) => {
        types.push(type);
        throw new Error("a broken observer");
      },
    });
    await tp.once("a:1", () => 1);
    await tp.once("b:1", () => 1);
    await tp.once("a:1", notRun);
    expect([executions("a"), executions("b"), executions("c")]).toEqual([1, 1, 0]);
    expect(types).toEqual(["executing", "completed", "executing", "completed", "replayed"]);
    await close();
  });

  it("works under fake timers", async () => {
    const { tp, crash, lapse, close } = testTwiceproof();
    await crash("after-claim", () => tp.once("pay:1", () => "value"));
    vi.useFakeTimers({ now: 0 });
    lapse();
    expect(await problem(tp.once("pay:1", notRun))).toMatchObject({ code: "EFFECT_IN_DOUBT" });
    await close();
  });

  it("has the doubts, the locks and the store of a real one", async () => {
    const { tp, crash, lapse, close } = testTwiceproof();
    expect(await tp.exclusive("lock", () => "held")).toBe("held");
    await crash("before-record", () => tp.once("pay:1", () => "value"));
    lapse();
    const [doubt] = (await tp.doubts.list()).doubts;
    if (!doubt) throw new Error("there is no doubt");
    expect(await tp.doubts.resolve(doubt, done("seen"), { who: "ann", why: "saw it" })).toBe("applied");
    expect((await tp.doubts.history(doubt.id)).map(({ what }) => what)).toEqual(["verdict-completed"]);
    expect(await tp.once("pay:1", notRun)).toBe("seen");
    expect((await tp.store.get([doubt.id]))[0]?.state).toBe("completed");
    await until(async () => (await tp.doubts.get(doubt.id)) === null);
    await close();
    expect(await problem(tp.once("pay:2", notRun))).toMatchObject({ code: "CLOSED" });
  });
});
