import { describe, expect, it } from "vitest";
import { type Answer, done, doneWithoutResult, notDone, refused, unknown } from "../src/classify.ts";
import { defineEffect, type EffectRules, type ReconcileContext } from "../src/effect.ts";
import { fingerprint } from "../src/fingerprint.ts";
import { requestOf } from "../src/laws/requests.ts";
import { brokenConnection, never } from "./support/faults.ts";
import { notRun, rejection } from "./support/waiting.ts";
import { problem, type World, world } from "./support/world.ts";

const proved = notDone({ authoritative: true });

/** An effect in doubt: its worker died while the body ran. */
async function inDoubt(): Promise<World> {
  const made = world({ storeTimeoutMs: 2_000 });
  // No worker, because one that lives would renew.
  await made.store.claim([
    requestOf("default", "effect", "k:1", { fingerprint: fingerprint("k", undefined), leaseMs: 1_000 }),
  ]);
  made.advance(1_001);
  return made;
}

function asking(
  made: World,
  answer: (context: ReconcileContext) => Answer | Promise<Answer>,
  rules: Partial<EffectRules> = {},
) {
  const contexts: ReconcileContext[] = [];
  const reconcile: EffectRules["reconcile"] = (_, context) => {
    contexts.push(context);
    return answer(context);
  };
  const ask = (body: () => unknown = notRun) =>
    made.tp.once("k:1", body, { reconcile, settleDelayMs: 40, waitMs: 3_000, ...rules } as never);
  return { ask, contexts };
}

describe.concurrent("reconcile, asked about a crashed attempt", () => {
  it("done: its result is recorded, and this and later callers get it", async () => {
    const made = await inDoubt();
    const { ask, contexts } = asking(made, () => done({ id: "ch_1" }));
    expect(await ask()).toEqual({ id: "ch_1" });
    expect(await ask()).toEqual({ id: "ch_1" });
    expect(contexts).toHaveLength(1);
    expect(contexts[0]).toMatchObject({ token: 1, id: (await made.record("k:1")).id, claimedAt: expect.any(Date) });
    const [entry] = await made.history("k:1");
    expect(entry).toMatchObject({ what: "verdict-completed", who: expect.stringContaining("reconcile@") });
  });

  it("done without a result: it is told that it is gone, and never run", async () => {
    const { ask } = asking(await inDoubt(), doneWithoutResult);
    expect(await rejection(ask())).toMatchObject({ code: "EFFECT_RESULT_UNAVAILABLE" });
  });

  it("refused: it is refused for good, with the reason", async () => {
    const made = await inDoubt();
    const { ask } = asking(made, () => refused("the card was stolen"));
    const error = await problem(ask());
    expect(error.code).toBe("EFFECT_REFUSED");
    expect(error.message).toContain("the card was stolen");
    expect((await made.record("k:1")).state).toBe("failed");
  });

  it.each<readonly [string, () => Answer | Promise<Answer>]>([
    ["unknown", unknown],
    ["not done, without authority", () => notDone()],
    ["the raw response of the look-up", () => ({ answer: "done", id: "ch_1" }) as never],
    ["nothing", () => undefined as never],
  ])("%s: the doubt stays", async (_, answer) => {
    const made = await inDoubt();
    const { ask, contexts } = asking(made, answer);
    expect(await problem(ask())).toMatchObject({ code: "EFFECT_IN_DOUBT" });
    expect((await made.record("k:1")).state).toBe("in-doubt");
    expect(await made.history("k:1")).toEqual([]);
    expect(contexts).toHaveLength(1);
  });

  it.each<readonly [string, () => Promise<Answer>]>([
    [
      "throws",
      () => {
        throw brokenConnection();
      },
    ],
    ["rejects", () => Promise.reject(brokenConnection())],
  ])("a hook that %s leaves the doubt, and says why to the operator", async (_, answer) => {
    const { ask } = asking(await inDoubt(), answer);
    expect(await problem(ask())).toMatchObject({ code: "EFFECT_IN_DOUBT", cause: { code: "ECONNRESET" } });
  });

  it("a hook that hangs is not waited for longer than the caller waits, and is told", async () => {
    const { ask, contexts } = asking(await inDoubt(), () => never(), { waitMs: 50 });
    expect(await problem(ask())).toMatchObject({ code: "EFFECT_IN_DOUBT" });
    expect(contexts[0]?.signal.aborted).toBe(true);
  });

  it("a caller that goes away while the hook works is told of the doubt, and the hook to stop", async () => {
    const controller = new AbortController();
    const made = await inDoubt();
    const rules = { signal: controller.signal } as Partial<EffectRules>;
    const { ask, contexts } = asking(
      made,
      () => {
        controller.abort();
        return never();
      },
      rules,
    );
    expect(await problem(ask())).toMatchObject({ code: "EFFECT_IN_DOUBT" });
    expect(contexts[0]?.signal.aborted).toBe(true);
    expect((await made.record("k:1")).state).toBe("in-doubt");
  });
});

describe.concurrent("reconcile: not done, with authority", () => {
  it("18: counts when the doubt stood unchanged for settleDelayMs before the second look-up", async () => {
    const made = await inDoubt();
    const at: number[] = [];
    const { ask } = asking(made, () => {
      at.push(performance.now());
      return proved;
    });
    expect(await ask(() => "again")).toBe("again");
    expect(at).toHaveLength(2);
    expect((at[1] ?? 0) - (at[0] ?? 0)).toBeGreaterThanOrEqual(35);
    expect(await made.record("k:1")).toMatchObject({ state: "completed", token: 2 });
    expect((await made.history("k:1")).map(({ what }) => what)).toEqual(["verdict-released"]);
  });

  it("18: counts not when the second look-up finds it after all", async () => {
    const made = await inDoubt();
    let asked = 0;
    const { ask } = asking(made, () => (++asked === 1 ? proved : done("late")));
    expect(await ask()).toBe("late");
  });

  it.each([
    ["unknown", unknown],
    ["no authority", () => notDone()],
  ] as const)("18: counts not when the second look-up says %s", async (_, second) => {
    const made = await inDoubt();
    let asked = 0;
    const { ask } = asking(made, () => (++asked === 1 ? proved : second()));
    expect(await problem(ask())).toMatchObject({ code: "EFFECT_IN_DOUBT" });
    expect(await made.record("k:1")).toMatchObject({ state: "in-doubt", token: 1 });
    expect(await made.history("k:1")).toEqual([]);
  });

  it("18: counts not when the caller cannot wait that long", async () => {
    const { ask } = asking(await inDoubt(), () => proved, { settleDelayMs: 5_000, waitMs: 100 });
    expect(await problem(ask())).toMatchObject({ code: "EFFECT_IN_DOUBT" });
  });

  it("18: counts not for a doubt that changed between the look-ups", async () => {
    const made = await inDoubt();
    let asked = 0;
    const { ask } = asking(made, async () => {
      if (++asked === 1) {
        const { id, attemptId, token } = await made.record("k:1");
        await made.store.renew([{ id, attemptId, token, leaseMs: 1_000 }]);
        made.advance(1_001);
      }
      return asked < 3 ? proved : unknown();
    });
    expect(await problem(ask())).toMatchObject({ code: "EFFECT_IN_DOUBT" });
    expect((await made.record("k:1")).token).toBe(1);
    expect(made.asked("resolve")).toHaveLength(0);
  });

  it("18: a renewal between the look-up and its verdict refuses the verdict", async () => {
    const made = await inDoubt();
    made.around("resolve", async (pass) => {
      const { id, attemptId, token } = await made.record("k:1");
      await made.store.renew([{ id, attemptId, token, leaseMs: 60_000 }]);
      return await pass();
    });
    const { ask } = asking(made, () => done("found"), { waitMs: 100 });
    expect(await problem(ask())).toMatchObject({ code: "EFFECT_RUNNING" });
    expect(await made.history("k:1")).toEqual([]);
  });

  it("18: a result recorded between the look-up and its verdict is what counts", async () => {
    const made = await inDoubt();
    made.around("resolve", async (pass) => {
      const { id, attemptId, token } = await made.record("k:1");
      await made.store.settle([
        { id, attemptId, token, state: "completed", payload: { format: "json", text: '"its own"' } },
      ]);
      return await pass();
    });
    expect(await asking(made, () => proved, { settleDelayMs: 0 }).ask()).toBe("its own");
  });

  it("1: of many callers that all ask, one runs it again", async () => {
    const made = await inDoubt();
    const { ask } = asking(made, () => proved);
    const results = await Promise.all(Array.from({ length: 5 }, (_, n) => ask(() => n)));
    expect(new Set(results).size).toBe(1);
    expect((await made.record("k:1")).token).toBe(2);
  });
});

describe.concurrent("reconcile, asked after an own throw", () => {
  const throwing = (made: World, answer: () => Answer, settleDelayMs = 20) => {
    let runs = 0;
    const call = made.tp.once<unknown>(
      "k:1",
      () => {
        runs++;
        throw brokenConnection();
      },
      { reconcile: answer, settleDelayMs },
    );
    return { call, runs: () => runs };
  };

  it("done: the caller gets the value that was found", async () => {
    const made = world();
    expect(await throwing(made, () => done({ id: "ch_1" })).call).toEqual({ id: "ch_1" });
  });

  it("not done: the caller is told that it was not executed, and nothing is run again in this call", async () => {
    const made = world();
    const { call, runs } = throwing(made, () => proved);
    expect(await problem(call)).toMatchObject({ code: "EFFECT_NOT_EXECUTED", cause: { code: "ECONNRESET" } });
    expect(runs()).toBe(1);
    expect(await made.tp.once("k:1", ({ token }) => token)).toBe(2);
  });

  it("refused: the caller is told the reason", async () => {
    const { call } = throwing(world(), () => refused("no such card"));
    const error = await problem(call);
    expect(error.code).toBe("EFFECT_REFUSED");
    expect(error.message).toContain("no such card");
  });

  it("unknown: the caller is told of the doubt, with its own error as the cause", async () => {
    expect(await problem(throwing(world(), unknown).call)).toMatchObject({
      code: "EFFECT_IN_DOUBT",
      cause: { code: "ECONNRESET" },
    });
  });
});

describe("the hook of a defined effect", () => {
  it("gets the input and the key of the attempt", async () => {
    const { tp } = world();
    const keys: string[] = [];
    const charge = defineEffect({
      name: "charge",
      key: (input: { order: string }) => input.order,
      run: (_: { order: string }, { idempotencyKey }): string => {
        keys.push(idempotencyKey);
        throw brokenConnection();
      },
      reconcile: ({ order }, { idempotencyKey }) => {
        keys.push(idempotencyKey);
        return done(order);
      },
    });
    expect(await tp.once(charge, { order: "o-1" })).toBe("o-1");
    expect(keys[0]).toBe(keys[1]);
  });
});
