import { describe, expect, it, onTestFinished, vi } from "vitest";
import { frames } from "../src/chain.ts";
import { notExecuted } from "../src/classify.ts";
import { memoryStore } from "../src/memory-store.ts";
import type { ClaimRecord } from "../src/store.ts";
import { createTwiceproof } from "../src/twiceproof.ts";
import { block } from "./support/clocks.ts";
import { brokenConnection } from "./support/faults.ts";
import { gate, notRun, until } from "./support/waiting.ts";
import { problem, world } from "./support/world.ts";

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe("the start and the end", () => {
  it("11: an observer that blocks beyond the lease does not let the body start under a lapsed one", async () => {
    const { store, record, asked } = world();
    const onEvent = ({ type }: { readonly type: string }): void => {
      if (type === "executing") block(1_050);
    };
    const tp = createTwiceproof({ store, onEvent });
    const states: ClaimRecord["state"][] = [];
    await tp.once("k:1", async () => states.push((await record("k:1")).state), { leaseMs: 1_000 });
    expect(states).toEqual(["claimed"]);
    expect(asked("renew").length).toBeGreaterThan(0);
  });

  it("11: and when it cannot be renewed then, the body is not entered, and the claim is released", async () => {
    const { store, record, around } = world();
    const onEvent = ({ type }: { readonly type: string }): void => {
      if (type === "executing") block(1_050);
    };
    const tp = createTwiceproof({ store, onEvent, storeTimeoutMs: 100 });
    const mend = around("renew", () => Promise.reject(brokenConnection()));
    expect(await problem(tp.once("k:1", notRun, { leaseMs: 1_000 }))).toMatchObject({ code: "STORE_UNAVAILABLE" });
    mend();
    await until(async () => (await record("k:1")).state === "released");
  });

  it("`close` from inside of what it would wait for is told so, and closes nothing", async () => {
    const { tp, record } = world();
    const inside = (): Promise<string> => tp.close({ graceMs: 60_000 }).catch(({ code }) => code);
    expect(await tp.once("k:1", inside)).toBe("WAITS_FOR_ITSELF");
    expect(await tp.exclusive("lock", inside)).toBe("WAITS_FOR_ITSELF");
    expect(await tp.withRun({ thread: "t" }, inside)).toBe("WAITS_FOR_ITSELF");
    expect((await record("k:1")).state).toBe("completed");
    await tp.close({ graceMs: 12.5 });
    expect(await problem(tp.once("k:2", notRun))).toMatchObject({ code: "CLOSED" });
  });

  it("a loop that starts its next round from inside each body keeps no chain of bodies", async () => {
    const tp = createTwiceproof({ store: memoryStore() });
    const rounds = 50;
    let longest = 0;
    await new Promise<void>((resolve, reject) => {
      const round = (count: number): void => {
        tp.once(`round:${count}`, () => {
          let length = 0;
          for (let frame = frames()[0]; frame !== undefined; frame = frame.outer) length++;
          longest = Math.max(longest, length);
          if (count < rounds) setTimeout(round, 4, count + 1);
          else resolve();
        }).catch(reject);
      };
      round(1);
    });
    expect(longest).toBeLessThan(10);
  });
});

describe("many at once", () => {
  it("1: callers of one key in one process cost few statements, and one of them executes", async () => {
    const { tp, asked, executions } = world();
    const { opened, open } = gate();
    const body = (): Promise<string> => opened.then(() => "value");
    const calls = (input: number) => Array.from({ length: 1_000 }, () => tp.once("k:1", body, { input }));
    const [same, others] = [calls(1), calls(2).map((call) => problem(call))];
    await until(() => executions() === 1);
    await turn();
    open();
    expect(new Set(await Promise.all(same))).toEqual(new Set(["value"]));
    expect(new Set((await Promise.all(others)).map(({ code }) => code))).toEqual(new Set(["EFFECT_KEY_REUSED"]));
    expect(executions()).toBe(1);
    expect([asked("claim").length, asked("get").length]).toEqual([2, 1]);
  });

  it("1: callers of one free key, too, and of one lock", async () => {
    const { tp, asked, executions } = world();
    await problem(tp.once("k:1", () => Promise.reject(notExecuted("not sent"))));
    const calls = Array.from({ length: 1_000 }, () => tp.once("k:1", async () => "value"));
    expect(new Set(await Promise.all(calls))).toEqual(new Set(["value"]));
    expect(executions()).toBe(2);
    expect(asked("claim").length).toBeLessThan(10);
    const claims = asked("claim").length;
    const { opened, open } = gate();
    const busy = Array.from({ length: 1_000 }, () => tp.exclusive("lock", () => opened.then(() => "mine")));
    const outcomes = Promise.allSettled(busy);
    await until(() => asked("claim").length > claims + 1);
    open();
    expect((await outcomes).filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    expect(asked("claim").length).toBe(claims + 2);
  });

  it("17: callers of many keys, who queue for longer than a store may be silent, are all served", async () => {
    const { tp, asked, executions } = world({ storeTimeoutMs: 100 });
    const count = 6_000;
    const calls = Array.from({ length: count }, (_, index) => tp.once(`k:${index}`, async () => index));
    const outcomes = await Promise.allSettled(calls);
    expect(outcomes.filter(({ status }) => status === "rejected")).toEqual([]);
    expect(executions()).toBe(count);
    for (const method of ["claim", "settle"] as const) expect(asked(method).length).toBeLessThan(count / 100);
  });

  it("calls that end one by one cost a closing no more each when there are many", async () => {
    async function closingMs(count: number): Promise<number> {
      const tp = createTwiceproof({ store: memoryStore() });
      const ends: (() => void)[] = [];
      const all = Array.from({ length: count }, (_, index) =>
        tp.once(`k:${index}`, () => new Promise<void>((resolve) => ends.push(resolve))),
      );
      await until(() => ends.length === count);
      const closing = tp.close();
      const from = process.cpuUsage();
      for (const end of ends) {
        end();
        await turn();
      }
      await Promise.all([...all, closing]);
      const { user, system } = process.cpuUsage(from);
      return (user + system) / 1_000;
    }
    await closingMs(300);
    const few = await closingMs(300);
    expect(await closingMs(3_000)).toBeLessThan(40 * Math.max(few, 5));
  });
});

describe("fake timers that stand before the package is loaded", () => {
  it("stop neither a call nor a heartbeat", async () => {
    const { setTimeout: realTimeout } = globalThis;
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    vi.resetModules();
    const fresh = await import("./support/world.ts");
    const { tp, asked } = fresh.world();
    expect(await tp.once("k:1", async () => "value")).toBe("value");
    const { opened, open } = gate();
    const held = tp.once("k:2", () => opened, { leaseMs: 1_000 });
    for (let tries = 0; tries < 200 && asked("renew").length === 0; tries++)
      await new Promise((resolve) => realTimeout(resolve, 10));
    expect(asked("renew").length).toBeGreaterThan(0);
    open();
    await held;
    await tp.close();
  });
});
