import { describe, expect, it } from "vitest";
import { TwiceproofError } from "../src/errors.ts";
import { type LaneOptions, lane } from "../src/lane.ts";
import { brokenConnection, never } from "./support/faults.ts";
import { gate, rejection, until } from "./support/waiting.ts";

interface Item {
  readonly id: string;
  readonly weight?: number;
}

const named = (count: number): Item[] => Array.from({ length: count }, (_, n) => ({ id: `${n}` }));

/** Answers each item with its id, and remembers the lists. */
function recorded(
  answer: (items: readonly Item[]) => Promise<readonly string[]> = async (items) => items.map(({ id }) => id),
  options: LaneOptions<Item, string> = {},
) {
  const lists: string[][] = [];
  const ask = lane<Item, string>(
    (items) => {
      lists.push(items.map(({ id }) => id));
      return answer(items);
    },
    { weigh: ({ weight = 0 }) => weight, ...options },
  );
  return { ask, lists };
}

/** The list that begins with this id is answered later than others. */
function behind(first: string, opened: Promise<unknown>) {
  return async (items: readonly Item[]) => {
    if (items[0]?.id === first) await opened;
    return items.map(({ id }) => id);
  };
}

describe("a lane", () => {
  it("sends what one turn of the event loop brings as one list, and answers each its own", async () => {
    const { ask, lists } = recorded();
    const first = named(50).map((item) => ask(item));
    const inMicrotask = Promise.resolve().then(() => ask({ id: "50" }));
    expect(await Promise.all([...first, inMicrotask])).toEqual(named(51).map(({ id }) => id));
    expect(lists).toHaveLength(1);
  });

  it("sends what comes while a list is under way as the next one", async () => {
    const slow = gate();
    const { ask, lists } = recorded(behind("first", slow.opened));
    const first = ask({ id: "first" });
    await until(() => lists.length === 1);
    const rest = [ask({ id: "a" })];
    await new Promise((resolve) => setImmediate(resolve));
    rest.push(ask({ id: "b" }));
    slow.open();
    expect(await Promise.all([first, ...rest])).toEqual(["first", "a", "b"]);
    expect(lists).toEqual([["first"], ["a", "b"]]);
  });

  it("that divides sends many as two lists at once, and the next when both are answered", async () => {
    const slow = gate();
    const { ask, lists } = recorded(behind("0", slow.opened), { divides: true });
    const many = named(64).map((item) => ask(item));
    // Of the second half.
    expect(await many[63]).toBe("63");
    expect(lists.map(({ length }) => length)).toEqual([32, 32]);
    const few = named(63).map(({ id }) => ask({ id: `next ${id}` }));
    await new Promise((resolve) => setImmediate(resolve));
    expect(lists).toHaveLength(2);
    slow.open();
    expect(await Promise.all(many)).toEqual(named(64).map(({ id }) => id));
    await Promise.all(few);
    expect(lists.map(({ length }) => length)).toEqual([32, 32, 63]);
  });

  it("whose items go apart sends each at once and alone, and gives an answer to others of its id", async () => {
    const slow = gate();
    const { ask, lists } = recorded(behind("first", slow.opened), { apart: true, answers: () => true });
    const first = ask({ id: "first" });
    await until(() => lists.length === 1);
    expect(await Promise.all(["a", "b", "a"].map((id) => ask({ id })))).toEqual(["a", "b", "a"]);
    expect(lists).toEqual([["first"], ["a"], ["b"]]);
    slow.open();
    expect(await first).toBe("first");
  });

  it("never has an id twice in a list, and keeps the order of its calls", async () => {
    const { ask, lists } = recorded();
    const settled: number[] = [];
    await Promise.all(
      [1, 2, 3].map((n) => ask({ id: "same" }).then(() => settled.push(n))).concat(ask({ id: "other" }).then(() => 0)),
    );
    expect(lists).toEqual([["same", "other"], ["same"], ["same"]]);
    expect(settled).toEqual([1, 2, 3]);
  });

  it("sends no more than 500 items, or a mebibyte, at once", async () => {
    const many = recorded();
    await Promise.all(named(1_100).map((item) => many.ask(item)));
    expect(many.lists.map(({ length }) => length)).toEqual([500, 500, 100]);
    const heavy = recorded();
    const weights = [600_000, 600_000, 400_000, 2_000_000];
    await Promise.all(weights.map((weight, n) => heavy.ask({ id: `${n}`, weight })));
    expect(heavy.lists).toEqual([["0"], ["1", "2"], ["3"]]);
  });

  it("16: is not held up for long by a list that never answers", async () => {
    const { ask, lists } = recorded((items) =>
      items.some(({ id }) => id === "blocked") ? never() : Promise.resolve(items.map(({ id }) => id)),
    );
    void ask({ id: "blocked" });
    await until(() => lists.length === 1);
    const started = performance.now();
    expect(await Promise.all([ask({ id: "a" }), ask({ id: "b" })])).toEqual(["a", "b"]);
    expect(performance.now() - started).toBeLessThan(1_500);
    expect(lists).toEqual([["blocked"], ["a", "b"]]);
  });

  it("16: is overtaken again by each list that hangs", async () => {
    const { ask, lists } = recorded((items) =>
      items.some(({ id }) => id.startsWith("blocked")) ? never() : Promise.resolve(items.map(({ id }) => id)),
    );
    for (const n of [1, 2]) {
      void ask({ id: `blocked${n}` });
      await until(() => lists.length === 2 * n - 1);
      expect(await ask({ id: "a" })).toBe("a");
    }
  });

  it("16: asks the items of a list that failed one by one", async () => {
    const { ask, lists } = recorded(async (items) => {
      if (items.some(({ id }) => id === "bad")) throw brokenConnection();
      return items.map(({ id }) => id);
    });
    const outcomes = await Promise.allSettled(["a", "bad", "b"].map((id) => ask({ id })));
    expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    expect(lists).toEqual([["a", "bad", "b"], ["a"], ["bad"], ["b"]]);
  });

  it("takes a wrong number of answers, or a throw without a promise, for a failure", async () => {
    const few = recorded(async () => []);
    await expect(few.ask({ id: "a" })).rejects.toThrow(TypeError);
    const throwing = recorded(() => {
      throw brokenConnection();
    });
    await expect(throwing.ask({ id: "a" })).rejects.toMatchObject({ code: "ECONNRESET" });
  });

  it("17: asks nobody again about a set-up that somebody has to change", async () => {
    const { ask, lists } = recorded(() => Promise.reject(new TwiceproofError("STORE_CLOSED", "The store is closed.")));
    const outcomes = await Promise.allSettled(named(3).map((item) => ask(item)));
    expect(outcomes.map(({ status }) => status)).toEqual(["rejected", "rejected", "rejected"]);
    expect(lists).toHaveLength(1);
  });

  it("does not send what was given up before", async () => {
    const { ask, lists } = recorded();
    const caller = { gaveUp: false };
    const givenUp = rejection(ask({ id: "a" }, caller));
    const kept = ask({ id: "b" });
    caller.gaveUp = true;
    expect(await kept).toBe("b");
    expect(await givenUp).toBeInstanceOf(Error);
    expect(lists).toEqual([["b"]]);
  });

  it("tells all who gave up, and asks for the rest, however many wait for one id", async () => {
    const { ask, lists } = recorded();
    const given = Array.from({ length: 20_000 }, () => rejection(ask({ id: "a" }, { gaveUp: true })));
    const left = [ask({ id: "a" }), ask({ id: "a" }), ask({ id: "b" })];
    expect(await Promise.all(left)).toEqual(["a", "a", "b"]);
    for (const error of await Promise.all(given)) if (!(error instanceof Error)) throw error;
    expect(lists).toEqual([["a", "b"], ["a"]]);
  });

  it("16: sends by itself what asks to go alone, also while a list hangs", async () => {
    const { ask, lists } = recorded((items) =>
      items.length > 1 ? never() : Promise.resolve(items.map(({ id }) => id)),
    );
    void ask({ id: "a" });
    void ask({ id: "b" });
    await until(() => lists.length === 1);
    expect(await ask({ id: "a" }, { gaveUp: false, alone: true })).toBe("a");
  });
});
