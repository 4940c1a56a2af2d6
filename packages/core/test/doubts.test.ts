import { describe, expect, it } from "vitest";
import { done, doneWithoutResult, notDone, notExecuted, refused, unknown } from "../src/classify.ts";
import type { Doubt } from "../src/doubts.ts";
import { findTwiceproofError } from "../src/errors.ts";
import { randomId } from "../src/id.ts";
import { brokenConnection } from "./support/faults.ts";
import { gate, notRun, rejection, until } from "./support/waiting.ts";
import { problem, type World, world } from "./support/world.ts";

const by = { who: "ann", why: "looked it up" };

async function doubtful({ tp }: World, key = "k:1", options: { scope?: string } = {}): Promise<void> {
  await rejection(tp.once(key, () => Promise.reject(brokenConnection()), options));
}

async function only({ tp }: World): Promise<Doubt> {
  const { doubts } = await tp.doubts.list();
  const [doubt] = doubts;
  if (!doubt || doubts.length > 1) throw new Error(`there are ${doubts.length} doubts`);
  return doubt;
}

describe("the list of doubts", () => {
  it("says what people need, and goes page by page, oldest first", async () => {
    const made = world();
    for (const n of [1, 2, 3, 4, 5]) {
      await doubtful(made, `pay:${n}`);
      made.advance(10);
    }
    const seen: string[] = [];
    let after: string | undefined;
    do {
      const page = await made.tp.doubts.list({ limit: 2, ...(after !== undefined && { after }) });
      expect(page.doubts.length).toBeLessThanOrEqual(2);
      seen.push(...page.doubts.map(({ key }) => key));
      after = page.next;
    } while (after !== undefined);
    expect(seen).toEqual(["pay:1", "pay:2", "pay:3", "pay:4", "pay:5"]);
    const [first] = (await made.tp.doubts.list({ limit: 1 })).doubts;
    expect(first).toMatchObject({ name: "pay", token: 1, disputed: false, claimedAt: expect.any(Date) });
    expect(first?.id.startsWith(first.ref)).toBe(true);
  });

  it("filters by name and scope, and holds neither locks, nor what runs or is settled, nor another namespace", async () => {
    const made = world();
    await doubtful(made, "a:1", { scope: "x" });
    await doubtful(made, "b:1", { scope: "y" });
    await made.tp.once("c:1", () => 1);
    const other = made.worker({ namespace: "other" });
    await rejection(other.once("d:1", () => Promise.reject(brokenConnection())));
    const { opened, open } = gate();
    const running = made.tp.exclusive("lock", () => made.tp.once("e:1", () => opened));
    await until(async () => (await made.record("e:1").catch(() => null)) !== null);
    const keys = async (query: object): Promise<string[]> =>
      (await made.tp.doubts.list(query)).doubts.map(({ key }) => key);
    expect(await keys({})).toEqual(["a:1", "b:1"]);
    expect(await keys({ name: "a" })).toEqual(["a:1"]);
    expect(await keys({ scope: "y" })).toEqual(["b:1"]);
    expect(await keys({ name: "a", scope: "y" })).toEqual([]);
    open();
    await running;
  });

  it("has an end: a doubt that was decided is there no more", async () => {
    const made = world();
    await doubtful(made);
    const doubt = await only(made);
    expect(await made.tp.doubts.get(doubt.id)).toEqual(doubt);
    await made.tp.doubts.resolve(doubt, done(1), by);
    expect(await made.tp.doubts.get(doubt.id)).toBeNull();
    expect(await made.tp.doubts.get("0".repeat(64))).toBeNull();
    expect((await made.tp.doubts.list()).doubts).toEqual([]);
  });
});

describe("15: a verdict", () => {
  it.each([
    ["done", done({ at: new Date(5) }), "verdict-completed"],
    ["done without a result", doneWithoutResult(), "verdict-completed"],
    ["refused", refused("no such card"), "verdict-failed"],
    ["not done", notDone(), "verdict-released"],
  ] as const)(
    "15: %s: is in the history with who, why and evidence, and is what callers are told",
    async (_, verdict, what) => {
      const made = world();
      await doubtful(made);
      const doubt = await only(made);
      expect(await made.tp.doubts.resolve(doubt, verdict, { ...by, evidence: "receipt 7" })).toBe("applied");
      const [abandoned, entry] = await made.tp.doubts.history(doubt.id);
      expect(abandoned?.what).toBe("abandoned");
      expect(entry).toMatchObject({ what, ...by, evidence: "receipt 7" });
      const told = await made.tp
        .once("k:1", ({ token }) => token)
        .catch((error: unknown) => findTwiceproofError(error)?.code);
      const expected = { "verdict-failed": "EFFECT_REFUSED", "verdict-released": 2 } as Record<string, unknown>;
      if (what !== "verdict-completed") expect(told).toBe(expected[what]);
      else expect(told).toEqual(verdict.answer === "done" ? { at: new Date(5) } : "EFFECT_RESULT_UNAVAILABLE");
    },
  );

  it("18: fits only the doubt as it was read", async () => {
    const made = world();
    await doubtful(made);
    const doubt = await only(made);
    for (const wrong of [{ version: doubt.version + 1 }, { token: doubt.token + 1 }, { id: "0".repeat(64) }])
      expect(await made.tp.doubts.resolve({ ...doubt, ...wrong }, done(1), by)).toBe("stale");
    expect(await made.tp.doubts.resolve(doubt, done(1), by)).toBe("applied");
    expect(await made.tp.doubts.resolve(doubt, done(2), by)).toBe("stale");
  });

  it("13: sent twice with its id answers `already`; another one with that id is stale", async () => {
    const made = world();
    await doubtful(made);
    const doubt = await only(made);
    const decisionId = randomId();
    expect(await made.tp.doubts.resolve(doubt, done(1), { ...by, decisionId })).toBe("applied");
    expect(await made.tp.doubts.resolve(doubt, done(1), { ...by, decisionId })).toBe("already");
    expect(await made.tp.doubts.resolve(doubt, notDone(), { ...by, decisionId })).toBe("stale");
    expect(await made.tp.once("k:1", notRun)).toBe(1);
    expect(await made.tp.doubts.history(doubt.id)).toHaveLength(2);
  });

  it("5: does not end a claim whose holder lives", async () => {
    const made = world();
    const { opened, open } = gate();
    const running = made.tp.once("k:1", () => opened);
    await until(() => made.executions() === 1);
    expect(await made.tp.doubts.resolve(await made.record("k:1"), notDone(), by)).toBe("stale");
    open();
    await running;
  });

  it("reopen frees only what was refused for good, and is recorded", async () => {
    const made = world();
    await rejection(made.tp.once("k:1", () => Promise.reject(refused("no"))));
    const failed = await made.record("k:1");
    expect(await made.tp.doubts.reopen({ ...failed, version: failed.version + 1 }, by)).toBe("stale");
    expect(await made.tp.doubts.reopen(failed, by)).toBe("applied");
    expect(await made.tp.doubts.reopen(failed, by)).toBe("stale");
    expect((await made.history("k:1")).at(-1)).toMatchObject({ what: "reopened", ...by });
  });
});

describe("wrong arguments of a verdict", () => {
  const doubt = { id: "a".repeat(64), token: 1, version: 1 };

  it.each<readonly [string, unknown, unknown, unknown]>([
    ["no verdict", doubt, undefined, by],
    ["unknown()", doubt, unknown(), by],
    ["a look-up's raw response", doubt, { answer: "done", id: 1 }, by],
    ["nobody", doubt, done(1), undefined],
    ["no who", doubt, done(1), { who: " ", why: "x" }],
    ["no why", doubt, done(1), { who: "ann" }],
    ["a NUL in why", doubt, done(1), { who: "ann", why: "a\0b" }],
    ["half a surrogate pair in evidence", doubt, done(1), { ...by, evidence: "\ud800" }],
    ["a wrong decision id", doubt, done(1), { ...by, decisionId: "A".repeat(32) }],
    ["no doubt", undefined, done(1), by],
    ["a doubt's short ref", "aaaaaaaa", done(1), by],
    ["a wrong id", { ...doubt, id: "k:1" }, done(1), by],
    ["no version", { id: doubt.id, token: 1 }, done(1), by],
    ["a token of text", { ...doubt, token: "1" }, done(1), by],
  ])("%s is told at once, and the store is not asked", async (_, at, verdict, decided) => {
    const { tp, asked } = world();
    const error = await problem(tp.doubts.resolve(at as never, verdict as never, decided as never));
    expect(error).toMatchObject({ code: "INVALID_ARGUMENT" });
    expect(asked("resolve")).toHaveLength(0);
  });

  it.each([0, -1, 1.5, Number.NaN, "10"])("a limit of %s is refused", async (limit) => {
    const { tp, asked } = world();
    expect(await problem(tp.doubts.list({ limit: limit as number }))).toMatchObject({ code: "INVALID_ARGUMENT" });
    expect(asked("list")).toHaveLength(0);
  });

  it.each([undefined, "k:1", 7])("an id of %s is refused", async (id) => {
    const { tp } = world();
    expect(await problem(tp.doubts.get(id as string))).toMatchObject({ code: "INVALID_ARGUMENT" });
    expect(await problem(tp.doubts.history(id as string))).toMatchObject({ code: "INVALID_ARGUMENT" });
    expect(await problem(tp.doubts.reopen({ ...doubt, id: id as string }, by))).toMatchObject({
      code: "INVALID_ARGUMENT",
    });
  });
});

describe("4: a holder that is late", () => {
  /** Its lease is over, somebody decides, and then its body returns. */
  async function late(made: World, decide: () => Promise<unknown>, result: unknown = "its own"): Promise<unknown> {
    return await made.tp.once(
      "k:1",
      async () => {
        made.advance(1_001);
        await decide();
        return result;
      },
      { leaseMs: 1_000 },
    );
  }

  it("4: records its result, when nobody decided", async () => {
    const made = world();
    expect(await late(made, async () => undefined)).toBe("its own");
    expect(await made.tp.once("k:1", notRun)).toBe("its own");
  });

  it("4: that completed against a 'not done' verdict is in doubt again, disputed, with its value", async () => {
    const made = world();
    const error = await problem(late(made, async () => made.tp.doubts.resolve(await only(made), notDone(), by)));
    expect(error).toMatchObject({ code: "EFFECT_IN_DOUBT", value: "its own" });
    expect(await only(made)).toMatchObject({ disputed: true, token: 1 });
    expect((await made.history("k:1")).map(({ what }) => what)).toEqual(["verdict-released", "late-completed"]);
    expect(made.events.map(({ type }) => type)).toContain("disputed");
    const reconcile = (): never => {
      throw new Error("evidence has failed once: a person decides");
    };
    const asked = await problem(made.tp.once("k:1", notRun, { reconcile }));
    expect(asked).toMatchObject({ code: "EFFECT_IN_DOUBT" });
    expect("cause" in asked).toBe(false);
    expect(await made.tp.doubts.resolve(await only(made), done("agreed"), by)).toBe("applied");
    expect(await made.tp.once("k:1", notRun)).toBe("agreed");
  });

  it("4: that completed against a refusal is in doubt again too", async () => {
    const made = world();
    expect(
      await problem(late(made, async () => made.tp.doubts.resolve(await only(made), refused("no"), by))),
    ).toMatchObject({
      code: "EFFECT_IN_DOUBT",
    });
    expect(await only(made)).toMatchObject({ disputed: true });
  });

  it("8: returns what the verdict said when that was 'done' before it", async () => {
    const made = world();
    expect(await late(made, async () => made.tp.doubts.resolve(await only(made), done("seen"), by))).toBe("seen");
    expect(await made.tp.once("k:1", notRun)).toBe("seen");
    expect((await made.history("k:1")).map(({ what }) => what)).toEqual(["verdict-completed", "late-completed"]);
  });

  it("4: that says what the verdict said confirms it", async () => {
    const made = world();
    expect(await late(made, async () => made.tp.doubts.resolve(await only(made), done("its own"), by))).toBe("its own");
    expect((await made.history("k:1")).map(({ what }) => what)).toEqual(["verdict-completed"]);
  });

  it("4: that completed after a new claim leaves nothing to free: the new holder's notExecuted is disputed", async () => {
    const made = world();
    let second: Promise<unknown> = Promise.resolve();
    const first = gate();
    await problem(
      late(made, async () => {
        await made.tp.doubts.resolve(await only(made), notDone(), by);
        const started = gate();
        second = problem(
          made.elsewhere(() =>
            made.tp.once("k:1", async () => {
              started.open();
              await first.opened;
              throw notExecuted("it was asked to stop");
            }),
          ),
        );
        await started.opened;
      }),
    );
    first.open();
    expect(await second).toMatchObject({ code: "EFFECT_IN_DOUBT" });
    expect(await only(made)).toMatchObject({ token: 2, disputed: true });
    expect(await problem(made.tp.once("k:1", notRun))).toMatchObject({ code: "EFFECT_IN_DOUBT" });
  });

  it("4: that completed after a new claim is a contradiction: the new holder is asked to stop", async () => {
    const made = world();
    const stopped = gate();
    let second: Promise<unknown> = Promise.resolve();
    const error = await problem(
      late(made, async () => {
        await made.tp.doubts.resolve(await only(made), notDone(), by);
        const started = gate();
        second = made.elsewhere(() =>
          made.worker().once(
            "k:1",
            async ({ signal, token }) => {
              signal.addEventListener("abort", stopped.open);
              started.open();
              await stopped.opened;
              return token;
            },
            { leaseMs: 1_000 },
          ),
        );
        await started.opened;
      }),
    );
    expect(error).toMatchObject({ code: "EFFECT_IN_DOUBT", value: "its own" });
    expect(await second).toBe(2);
    expect((await made.history("k:1")).map(({ what }) => what)).toEqual(["verdict-released", "late-completed"]);
  });
});
