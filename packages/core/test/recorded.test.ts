import { describe, expect, it } from "vitest";
import { notExecuted, refused } from "../src/classify.ts";
import { defineEffect, type EffectRules } from "../src/effect.ts";
import { gate, notRun, until } from "./support/waiting.ts";
import { problem, world } from "./support/world.ts";

const place = { scope: "t", turn: "m1" };

function charge(run: (cents: number) => unknown, rules: EffectRules<number> = {}) {
  return defineEffect({ name: "charge", run, ...rules });
}

describe("what is on record of a call", () => {
  it("is told without making the call, and names the error that the call would bring", async () => {
    const { tp, worker, advance, asked } = world();
    const { opened, open } = gate();
    const never = charge(notRun);
    expect(await tp.recorded(never, 1, place)).toEqual({ state: "none" });
    const running = tp.once(
      charge(() => opened),
      1,
      place,
    );
    await until(async () => (await tp.recorded(never, 1, place)).state === "running");
    expect(await tp.recorded(never, 1, place)).toMatchObject({ error: { code: "EFFECT_RUNNING" } });
    advance(30_001);
    expect(await tp.recorded(never, 1, place)).toMatchObject({ state: "in-doubt", error: { code: "EFFECT_IN_DOUBT" } });
    open();
    await running;
    const claims = asked("claim").length;
    expect(await worker().recorded(never, 1, place)).toEqual({ state: "completed", result: undefined, scope: "t" });
    const other = await tp.recorded(never, 2, { key: "k:1" });
    expect(other).toEqual({ state: "none" });
    expect(asked("claim")).toHaveLength(claims);
  });

  it("tells refusals, releases, results that were not kept, and keys of another input", async () => {
    const { tp } = world();
    const bodies = {
      failed: () => {
        throw refused("no such card");
      },
      released: () => {
        throw notExecuted("closed on Sundays");
      },
      unavailable: () => notRun,
    };
    for (const [state, body] of Object.entries(bodies)) {
      const key = `charge:${state}`;
      const direct = await tp.once(charge(body), 1, { key }).catch((error: unknown) => error as Error);
      const recorded = await tp.recorded(charge(notRun), 1, { key });
      expect(recorded.state).toBe(state);
      if (state !== "unavailable" && "error" in recorded)
        expect(recorded.error.message).toBe((direct as Error).message);
      expect(await tp.recorded(charge(notRun), 2, { key })).toMatchObject({ state: "key-reused" });
    }
  });

  it("of a run's call has the run's place", async () => {
    const { tp } = world();
    await tp.withRun({ thread: "t", turn: "m1" }, (run) =>
      run.once(
        charge(() => "ok"),
        1,
      ),
    );
    await tp.withRun({ thread: "t" }, async (run) => {
      expect(await run.recorded(charge(notRun), 1)).toEqual({ state: "none" });
      expect(await run.recorded(charge(notRun), 1, { turn: "m1" })).toEqual({
        state: "completed",
        result: "ok",
        scope: "t",
      });
    });
  });

  it("says whose call it was, where a key is global", async () => {
    const { tp } = world();
    const body = charge(() => "ok");
    await tp.withRun({ thread: "ana/1" }, (run) => run.once(body, 1, { key: "charge:7" }));
    await tp.once(body, 1, { key: "charge:8" });
    await tp.withRun({ thread: "bob/1" }, async (run) => {
      const [own, same, changed] = [
        await run.recorded(body, 1, { key: "charge:8" }),
        await run.recorded(body, 1, { key: "charge:7" }),
        await run.recorded(body, 2, { key: "charge:7" }),
      ];
      expect(own).toMatchObject({ state: "completed", scope: null });
      expect(same).toMatchObject({ state: "completed", scope: "ana/1" });
      expect(changed).toMatchObject({ state: "key-reused", scope: "ana/1" });
    });
  });

  it("is nothing of a read, and misses an identity as the call does", async () => {
    const { tp } = world();
    expect(await tp.recorded(charge(notRun, { kind: "read" }), 1)).toEqual({ state: "none" });
    expect(await problem(tp.recorded(charge(notRun), 1))).toMatchObject({ code: "IDENTITY_MISSING" });
  });
});

describe("a `key` that makes none", () => {
  const bad: Record<string, (cents: number) => string> = {
    throws: () => {
      throw new Error("secret");
    },
    "gives an empty one": () => "",
    "gives none": () => undefined as never,
    "is async": (async () => "k") as never,
  };
  for (const [what, key] of Object.entries(bad))
    it(`${what}: is told with the effect's name, before anything is claimed`, async () => {
      const { tp, asked } = world();
      const error = await problem(tp.once(charge(notRun, { key }), 1, place));
      expect(error).toMatchObject({ code: "INVALID_ARGUMENT" });
      expect(error.message).toContain('"charge"');
      expect(error.message).not.toContain("secret");
      expect(asked("claim")).toHaveLength(0);
    });
});
