import { describe, expect, it, vi } from "vitest";
import { TwiceproofError } from "../src/errors.ts";
import type { Caller } from "../src/lane.ts";
import { reach } from "../src/reach.ts";
import { brokenConnection, never } from "./support/faults.ts";
import { gate, notRun, rejection, until } from "./support/waiting.ts";
import { problem, world } from "./support/world.ts";

describe("a question to the store", () => {
  it("is asked again after an error, and not for longer than the time given", async () => {
    let asked = 0;
    expect(
      await reach(
        async () => {
          if (++asked < 3) throw brokenConnection();
          return "answer";
        },
        { withinMs: 2_000 },
      ),
    ).toBe("answer");
    expect(asked).toBe(3);
    const started = performance.now();
    const error = await problem(reach(() => Promise.reject(brokenConnection()), { withinMs: 120 }));
    expect(error).toMatchObject({ code: "STORE_UNAVAILABLE", status: 409, cause: { code: "ECONNRESET" } });
    expect(performance.now() - started).toBeLessThan(1_000);
  });

  it("is asked at least once, also when there is no time at all", async () => {
    expect(await reach(async () => "answer", { withinMs: 0 })).toBe("answer");
  });

  it("without an answer is asked again alone, and says that it gave up waiting", async () => {
    const callers: Caller[] = [];
    const answer = await reach((caller) => (callers.push(caller) === 1 ? never<string>() : Promise.resolve("second")), {
      withinMs: 90,
    });
    expect(answer).toBe("second");
    expect(callers.map(({ gaveUp, alone }) => [gaveUp, alone])).toEqual([
      [true, false],
      [true, true],
    ]);
  });

  it("13: takes the first answer to any of its asks, and hears of no second one", async () => {
    const slow = gate();
    const late: string[] = [];
    let asked = 0;
    const answer = reach<string>(() => (++asked === 1 ? slow.opened.then(() => "slow") : never<string>()), {
      withinMs: 900,
      onLate: (each) => late.push(each),
    });
    await until(() => asked === 2);
    const opened = performance.now();
    slow.open();
    expect(await answer).toBe("slow");
    expect(performance.now() - opened).toBeLessThan(200);
    expect(late).toEqual([]);
  });

  it("13: that was given up altogether hands on what comes after", async () => {
    const slow = gate();
    const late: string[] = [];
    await rejection(
      reach<string>(() => slow.opened.then(() => "late"), { withinMs: 30, onLate: (each) => late.push(each) }),
    );
    slow.open();
    await until(() => late.length > 0);
    expect(new Set(late)).toEqual(new Set(["late"]));
  });

  it("17: about a set-up that somebody has to change is not repeated", async () => {
    let asked = 0;
    const setup = new TwiceproofError("STORE_SCHEMA_MISSING", "The schema is missing.");
    expect(
      await rejection(
        reach(
          () => {
            asked++;
            return Promise.reject(setup);
          },
          { withinMs: 5_000 },
        ),
      ),
    ).toBe(setup);
    expect(asked).toBe(1);
  });

  it("goes on after a machine's sleep: the wall clock alone does not use up its time", async () => {
    vi.resetModules();
    let aheadMs = 0;
    const wall = Date.now;
    vi.spyOn(Date, "now").mockImplementation(() => wall() + aheadMs);
    const { reach: reachAfterSleep } = await import("../src/reach.ts");
    vi.restoreAllMocks();
    let asked = 0;
    const ask = async (): Promise<string> => {
      if (++asked > 1) return "answer";
      aheadMs = 8 * 60 * 60_000;
      throw brokenConnection();
    };
    expect(await reachAfterSleep(ask, { withinMs: 1_000 })).toBe("answer");
  });
});

describe.concurrent("17: before the effect", () => {
  it("a store that fails keeps the effect from running", async () => {
    const { tp, around, asked, executions } = world({ storeTimeoutMs: 150 });
    around("claim", () => Promise.reject(brokenConnection()));
    const error = await problem(tp.once("k:1", notRun));
    expect(error).toMatchObject({ code: "STORE_UNAVAILABLE", cause: { code: "ECONNRESET" } });
    expect(asked("claim").length).toBeGreaterThan(1);
    expect(executions()).toBe(0);
  });

  it("a store that hangs does too, and what landed unnoticed is released when it comes back", async () => {
    const { tp, around, record, executions } = world({ storeTimeoutMs: 150 });
    const mend = around("claim", async (pass) => {
      await pass();
      return await never();
    });
    expect(await problem(tp.once("k:1", notRun))).toMatchObject({ code: "STORE_UNAVAILABLE" });
    mend();
    await until(async () => (await record("k:1")).state === "released");
    expect(await tp.once("k:1", ({ token }) => token)).toBe(2);
    expect(executions()).toBe(1);
  });

  it("a claim that lands after it was given up is released too", async () => {
    const { tp, around, record } = world({ storeTimeoutMs: 100 });
    const slow = gate();
    let released = false;
    around("settle", async (pass) => {
      const answers = await pass();
      released = true;
      return answers;
    });
    around("claim", async (pass) => {
      await slow.opened;
      return await pass();
    });
    expect(await problem(tp.once("k:1", notRun))).toMatchObject({ code: "STORE_UNAVAILABLE" });
    // The release that was sent at once found nothing yet.
    await until(() => released);
    slow.open();
    await until(async () => (await record("k:1").catch(() => null))?.state === "released");
  });

  it("an error about the set-up is told as it is, at once", async () => {
    const { tp, around, asked } = world();
    around("claim", () => Promise.reject(new TwiceproofError("STORE_READ_ONLY", "The store is read-only.")));
    expect(await problem(tp.once("k:1", notRun))).toMatchObject({ code: "STORE_READ_ONLY" });
    expect(await problem(tp.exclusive("k", notRun))).toMatchObject({ code: "STORE_READ_ONLY" });
    expect(asked("claim")).toHaveLength(2);
  });
});

describe.concurrent("17: after the effect", () => {
  it("the record is retried until the store is back", async () => {
    const { tp, around, record, executions } = world();
    let failures = 0;
    around("settle", (pass) => (++failures <= 4 ? Promise.reject(brokenConnection()) : pass()));
    expect(await tp.once("k:1", () => ["value"])).toEqual(["value"]);
    expect(failures).toBe(5);
    expect((await record("k:1")).state).toBe("completed");
    expect(executions()).toBe(1);
  });

  it.each([
    ["fails", () => Promise.reject(brokenConnection())],
    ["hangs", () => never<never>()],
  ] as const)("a store that %s leaves a doubt with the value attached, and nothing is run again", async (_, fault) => {
    const { tp, around, worker, advance, executions } = world({ storeTimeoutMs: 100 });
    around("settle", fault);
    const error = await problem(tp.once("k:1", () => ({ canary: "v4lue" }), { leaseMs: 1_000 }));
    expect(error).toMatchObject({ code: "EFFECT_IN_DOUBT", value: { canary: "v4lue" } });
    expect(Object.keys(error)).not.toContain("value");
    expect(JSON.stringify(error)).not.toContain("v4lue");
    advance(1_001);
    expect(await problem(worker().once("k:1", notRun))).toMatchObject({ code: "EFFECT_IN_DOUBT" });
    expect(executions()).toBe(1);
  });

  it("a value of null is attached as null", async () => {
    const { tp, around } = world({ storeTimeoutMs: 100 });
    around("settle", () => Promise.reject(brokenConnection()));
    expect((await problem(tp.once("k:1", () => null))).value).toBeNull();
  });

  it("a store without a set-up gets no second record", async () => {
    const { tp, around, asked } = world();
    around("settle", () => Promise.reject(new TwiceproofError("STORE_CLOSED", "The store is closed.")));
    expect(await problem(tp.once("k:1", () => 1))).toMatchObject({
      code: "EFFECT_IN_DOUBT",
      value: 1,
      cause: { code: "STORE_CLOSED" },
    });
    expect(asked("settle")).toHaveLength(1);
  });
});

describe.concurrent("13: an answer that is lost", () => {
  it.each(["fails", "never comes"])("of a claim that landed and %s: the repeated claim knows its own", async (how) => {
    const { tp, around, record, asked, executions } = world({ storeTimeoutMs: 400 });
    let lost = 0;
    around("claim", async (pass) => {
      const answers = await pass();
      if (++lost > 2) return answers;
      return how === "fails" ? Promise.reject(brokenConnection()) : await never();
    });
    expect(await tp.once("k:1", ({ token }) => token)).toBe(1);
    expect(await record("k:1")).toMatchObject({ state: "completed", token: 1 });
    expect(asked("claim")).toHaveLength(3);
    expect(executions()).toBe(1);
  });

  it("of a claim, and comes while the body runs: the claim is not released under it", async () => {
    const { tp, around, worker, record, asked, executions } = world({ storeTimeoutMs: 300 });
    const slow = gate();
    const body = gate();
    let first = true;
    around("claim", async (pass) => {
      const answers = await pass();
      if (first) {
        first = false;
        await slow.opened;
      }
      return answers;
    });
    const running = tp.once("k:1", () => body.opened.then(() => "mine"));
    await until(() => executions() === 1);
    slow.open();
    expect(await problem(worker().once("k:1", notRun, { waitMs: 80 }))).toMatchObject({ code: "EFFECT_RUNNING" });
    body.open();
    expect(await running).toBe("mine");
    expect(await record("k:1")).toMatchObject({ state: "completed", token: 1 });
    expect(asked("settle")).toHaveLength(1);
  });

  it("of a record that landed: the repeated one is told so", async () => {
    const { tp, around, history } = world();
    let lost = 0;
    around("settle", async (pass) => {
      const answers = await pass();
      return ++lost < 3 ? Promise.reject(brokenConnection()) : answers;
    });
    expect(await tp.once("k:1", () => "value")).toBe("value");
    expect(lost).toBe(3);
    expect(await history("k:1")).toEqual([]);
  });

  it("of a verdict that landed: it stands once in the history", async () => {
    const { tp, around, history } = world();
    await rejection(tp.once("k:1", () => Promise.reject(new Error("no answer"))));
    let lost = 0;
    around("resolve", async (pass) => {
      const answer = await pass();
      return ++lost < 3 ? Promise.reject(brokenConnection()) : answer;
    });
    const [doubt] = (await tp.doubts.list()).doubts;
    if (!doubt) throw new Error("there is no doubt");
    expect(await tp.doubts.resolve(doubt, { answer: "done", result: 1 }, { who: "ann", why: "saw it" })).toBe(
      "already",
    );
    expect((await history("k:1")).map(({ what }) => what)).toEqual(["abandoned", "verdict-completed"]);
  });

  it("of a lock's release is no loss of the lock", async () => {
    const { tp, around } = world();
    let lost = 0;
    around("settle", async (pass) => {
      const answers = await pass();
      return ++lost < 3 ? Promise.reject(brokenConnection()) : answers;
    });
    expect(await tp.exclusive("k", () => "value")).toBe("value");
  });
});

describe.concurrent("16: one bad item in a batch", () => {
  const ids = async (record: (key: string) => Promise<{ id: string }>, key: string): Promise<string> =>
    (await record(key)).id;

  it("that fails its batch fails nobody else", async () => {
    const { tp, around, asked } = world({ storeTimeoutMs: 200 });
    around("claim", (pass, requests) =>
      requests.some(({ key }) => key === "k:bad") ? Promise.reject(brokenConnection()) : pass(),
    );
    const outcomes = await Promise.allSettled(["k:1", "k:bad", "k:2"].map((key) => tp.once(key, () => key)));
    expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    expect(asked("claim")[0]?.[0]).toHaveLength(3);
  });

  it("that hangs for ever lets its neighbours through before they give up", async () => {
    const { tp, around } = world({ storeTimeoutMs: 450 });
    around("claim", (pass, requests) => (requests.some(({ key }) => key === "k:bad") ? never() : pass()));
    const outcomes = await Promise.allSettled(["k:1", "k:bad", "k:2", "k:3"].map((key) => tp.once(key, () => key)));
    expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled", "fulfilled"]);
  });

  it("of records does not keep the others from being recorded", async () => {
    const { tp, around, record } = world({ storeTimeoutMs: 100 });
    const keys = ["k:1", "k:bad", "k:2"];
    const all = gate();
    let started = 0;
    const calls = keys.map((key) =>
      tp.once(key, () => {
        started++;
        return all.opened.then(() => key);
      }),
    );
    await until(() => started === keys.length);
    const bad = await ids(record, "k:bad");
    around("settle", (pass, settlements) =>
      settlements.some(({ id }) => id === bad) ? Promise.reject(brokenConnection()) : pass(),
    );
    all.open();
    const outcomes = await Promise.allSettled(calls);
    expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    expect(await problem(calls[1] as Promise<unknown>)).toMatchObject({ code: "EFFECT_IN_DOUBT", value: "k:bad" });
  });
});
