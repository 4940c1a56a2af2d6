import { describe, expect, it } from "vitest";
import { notExecuted } from "../src/classify.ts";
import { isInDoubt } from "../src/errors.ts";
import { never } from "./support/faults.ts";
import { gate, notRun, until } from "./support/waiting.ts";
import { problem, world } from "./support/world.ts";

describe("close", () => {
  it("waits for what runs, and for its record", async () => {
    const { tp, record, executions } = world();
    const { opened, open } = gate();
    const running = tp.once("k:1", () => opened.then(() => "value"));
    await until(() => executions() === 1);
    let closed = false;
    const closing = tp.close({ graceMs: 4_000 }).then(() => {
      closed = true;
    });
    await new Promise((resolve) => setImmediate(resolve));
    expect(closed).toBe(false);
    open();
    await closing;
    expect((await record("k:1")).state).toBe("completed");
    expect(await running).toBe("value");
  });

  it("starts nothing new", async () => {
    const { tp, asked } = world();
    await tp.close();
    for (const call of [tp.once("k:1", notRun), tp.exclusive("lock", notRun), tp.withRun({ thread: "t" }, notRun)])
      expect(await problem(call)).toMatchObject({ code: "CLOSED", status: 409 });
    expect(asked("claim")).toHaveLength(0);
    expect(asked("close")).toHaveLength(1);
  });

  it("lets a running effect finish what it consists of, and a running run start nothing", async () => {
    const { tp, executions } = world();
    const { opened, open } = gate();
    const effect = tp.once("outer:1", async () => {
      await opened;
      return await tp.once("inner:1", () => tp.exclusive("lock", () => "inner"));
    });
    const run = tp.withRun({ thread: "t" }, async (each) => {
      await opened;
      return (await problem(each.once("k:1", notRun))).code;
    });
    await until(() => executions() === 1);
    const closing = tp.close({ graceMs: 4_000 });
    open();
    expect(await effect).toBe("inner");
    expect(await run).toBe("CLOSED");
    await closing;
  });

  it.each(["once", "exclusive"] as const)(
    "waits for a claim of %s that is under way, and its body does not start",
    async (what) => {
      const { tp, around, record, asked } = world();
      const { opened, open } = gate();
      around("claim", async (pass) => {
        const answers = await pass();
        await opened;
        return answers;
      });
      const call = problem(what === "once" ? tp.once("k", notRun) : tp.exclusive("k", notRun));
      await until(() => asked("claim").length === 1);
      const closing = tp.close({ graceMs: 4_000 });
      open();
      expect(await call).toMatchObject({ code: "CLOSED" });
      await closing;
      await until(async () => (await record("k", what === "once" ? "effect" : "lock")).state === "released");
    },
  );

  it("sends away at once those who wait for others", async () => {
    const { tp, worker, asked } = world();
    const { opened, open } = gate();
    const theirs = [worker().once("k:1", () => opened), worker().exclusive("lock", () => opened)];
    const waiting = [
      problem(tp.once("k:1", notRun, { waitMs: 20_000 })),
      problem(tp.exclusive("lock", notRun, { waitMs: 20_000 })),
    ];
    await until(() => asked("get").length > 0 && asked("claim").length > 1);
    const started = performance.now();
    await tp.close({ graceMs: 20_000 });
    expect(performance.now() - started).toBeLessThan(3_000);
    const [effect, lock] = await Promise.all(waiting);
    // "Nothing was started" would be untrue of an effect that runs elsewhere.
    expect(effect).toMatchObject({ code: "EFFECT_RUNNING", cause: { code: "CLOSED" } });
    expect(lock).toMatchObject({ code: "CLOSED" });
    open();
    await Promise.all(theirs);
  });

  it("out of patience, stops what runs and gives it up: others learn of the doubt now", async () => {
    const { tp, worker, record, history, executions } = world();
    const stopped: unknown[] = [];
    void tp.once("k:1", ({ signal }) => {
      signal.addEventListener("abort", () => stopped.push(signal.reason));
      return never();
    });
    await until(() => executions() === 1);
    await tp.close({ graceMs: 20 });
    expect(stopped).toMatchObject([{ code: "CLOSED" }]);
    expect(await record("k:1")).toMatchObject({ state: "in-doubt", abandoned: true });
    expect((await history("k:1")).map(({ what, why }) => [what, why])).toEqual([["abandoned", "shutdown"]]);
    expect(isInDoubt(await problem(worker().once("k:1", notRun)))).toBe(true);
  });

  it("out of patience, still records what a body that heeds its signal says", async () => {
    const { tp, around, record, executions } = world();
    const states: string[] = [];
    around("close", async (pass) => {
      for (const key of ["done:1", "not:1"]) states.push((await record(key)).state);
      return await pass();
    });
    const heeds =
      (say: () => unknown) =>
      async ({ signal }: { readonly signal: AbortSignal }) => {
        await new Promise((resolve) => signal.addEventListener("abort", resolve));
        return say();
      };
    const done = tp.once(
      "done:1",
      heeds(() => "half of it"),
    );
    const not = problem(
      tp.once(
        "not:1",
        heeds(() => {
          throw notExecuted("nothing was sent yet");
        }),
      ),
    );
    await until(() => executions() === 2);
    await tp.close({ graceMs: 20 });
    expect(states, "before the store was closed").toEqual(["completed", "released"]);
    expect(await done).toBe("half of it");
    expect(await not).toMatchObject({ code: "EFFECT_NOT_EXECUTED" });
  });

  it("frees the threads that it gives up, and no lock of `exclusive`, whose body may still work", async () => {
    const { tp, worker, record } = world();
    const { opened, open } = gate();
    const run = problem(tp.withRun({ thread: "t" }, () => opened));
    const lock = tp.exclusive("lock", () => opened);
    await until(async () => (await record("lock", "lock").catch(() => null)) !== null);
    await until(async () => (await record("t", "thread").catch(() => null)) !== null);
    await tp.close({ graceMs: 20 });
    expect(await worker().withRun({ thread: "t" }, ({ token }) => token)).toBe(2);
    expect(await problem(worker().exclusive("lock", notRun))).toMatchObject({ code: "LOCK_BUSY" });
    open();
    expect(await run).toMatchObject({ code: "RUN_LOST" });
    await lock;
  });

  it("4: takes a late record while the store lives", async () => {
    const { tp, worker, executions } = world();
    const { opened, open } = gate();
    const running = tp.once("k:1", () => opened.then(() => "late"));
    await until(() => executions() === 1);
    await tp.close({ graceMs: 20 });
    open();
    expect(await running).toBe("late");
    expect(await worker().once("k:1", notRun)).toBe("late");
  });

  it("waits also for the first of two claims of one key, after the second is through", async () => {
    const { tp, advance, record, elsewhere, executions } = world();
    const { opened, open } = gate();
    const first = problem(tp.once("k:1", () => opened, { kind: "idempotent", leaseMs: 1_000 }));
    await until(() => executions() === 1);
    advance(1_001);
    expect(await elsewhere(() => tp.once("k:1", () => "second", { kind: "idempotent" }))).toBe("second");
    let closed = false;
    const closing = tp.close({ graceMs: 4_000 }).then(() => {
      closed = true;
    });
    await new Promise((resolve) => setImmediate(resolve));
    expect(closed).toBe(false);
    open();
    await closing;
    expect((await first).code).toBe("EFFECT_IN_DOUBT");
    expect((await record("k:1")).token).toBe(2);
  });

  it("may be called twice, also at the same time", async () => {
    const { tp } = world();
    await Promise.all([tp.close(), tp.close()]);
    await tp.close({ graceMs: 0 });
  });

  it.each([-1, Number.NaN, "1000"])("refuses a grace of %s, and then is not closed", async (graceMs) => {
    const { tp } = world();
    expect(await problem(tp.close({ graceMs: graceMs as number }))).toMatchObject({ code: "INVALID_ARGUMENT" });
    expect(await tp.once("k:1", () => 1)).toBe(1);
  });
});
