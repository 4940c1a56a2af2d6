import { done, notExecuted, type Twiceproof } from "@twiceproof/core";
import { describeOn } from "@twiceproof/test-servers/vitest";
import { describe, expect, it } from "vitest";
import { cutAt, newest, newWorld, range, rejection, type Scene, sceneOn, type World } from "./support.ts";

interface Stage extends Scene {
  readonly tp: Scene["tp"];
  readonly world: World;
}

const operator = { who: "ana", why: "asked" };

/** Whole calls, as users make them. Each has one outcome, wherever a connection is lost on the way. */
const calls: Readonly<Record<string, (tp: Twiceproof, key: string, stage: Stage) => Promise<void>>> = {
  async "an effect"(tp, key, { world, record }) {
    expect(await tp.once(key, () => world.act(key))).toMatchObject({ key });
    expect(await record(key)).toMatchObject({ state: "completed", token: 1, version: 2 });
  },

  async "an effect that was not executed, and is tried again"(tp, key, { world, record }) {
    const notYet = tp.once(key, () => {
      throw notExecuted("the card reader is off");
    });
    expect(await rejection(notYet)).toMatchObject({ code: "EFFECT_NOT_EXECUTED" });
    expect(await tp.once(key, () => world.act(key))).toMatchObject({ key });
    expect(await record(key)).toMatchObject({ state: "completed", token: 2, version: 4 });
  },

  async "a run with two effects"(tp, key, { world, record }) {
    const results = await tp.withRun({ thread: key }, async (run) => [
      await run.once(key, () => world.act(key)),
      await run.once(`${key}:second`, () => world.act(`${key}:second`)),
    ]);
    expect(results).toMatchObject([{ key }, { key: `${key}:second` }]);
    expect(world.acts(`${key}:second`)).toBe(1);
    expect(await record(key)).toMatchObject({ state: "completed", token: 1 });
    expect(await record(key, "thread")).toMatchObject({ state: "released", token: 1 });
  },

  async "a doubt that an operator ends"(tp, key, { world, record, store }) {
    const lost = tp.once(key, () => {
      world.act(key);
      throw new Error("the line was dead");
    });
    expect(await rejection(lost)).toMatchObject({ code: "EFFECT_IN_DOUBT" });
    const id = (await record(key))?.id ?? "";
    const doubt = await tp.doubts.get(id);
    // Asked again after a lost answer, it is told that its decision stands.
    expect(["applied", "already"]).toContain(
      await tp.doubts.resolve(doubt ?? { id: "", token: 0, version: 0 }, done("found"), operator),
    );
    expect(await tp.once(key, () => world.act(key))).toBe("found");
    expect((await store.history(id)).map(({ what }) => what)).toEqual(["abandoned", "verdict-completed"]);
  },
};

// Those of the servers side by side: they mostly wait.
describe.concurrent("calls", () => {
  describeOn(newest, "a connection that is lost in a call", (server) => {
    for (const at of ["request", "answer"] as const) {
      it.concurrent.for(Object.entries(calls))(
        `13: at any ${at} of %s: it happens once, and the caller is told so`,
        async ([, call], context) => {
          const scene = await sceneOn(server, context);
          const proxy = await scene.proxy();
          const stage = { ...scene, world: newWorld() };
          const tp = scene.tp({ through: proxy, connections: 2 });
          const other = scene.tp();
          await tp.once("warm", () => null);
          for (let nth = 1, wasCut = true; wasCut; nth++) {
            const key = `order:${nth}`;
            const cut = cutAt(proxy, nth, at);
            await call(tp, key, stage);
            wasCut = cut.done();
            expect(stage.world.acts(key)).toBe(1);
            const replayed = await other.once(key, () => stage.world.act(key));
            expect(await tp.once(key, () => stage.world.act(key))).toEqual(replayed);
            expect(stage.world.acts(key)).toBe(1);
            // Not one of the first rounds, or nothing was cut at all.
            if (!wasCut) expect(nth).toBeGreaterThan(2);
          }
        },
      );
    }
  });
});

describeOn(newest, "connections that are lost again and again", (server) => {
  it.concurrent.for(["onRequest", "onAnswer"] as const)(
    "13: %s, every thirteenth: each of sixty effects happens once, and three callers get its result",
    async (at, context) => {
      const scene = await sceneOn(server, context);
      const proxy = await scene.proxy();
      const world = newWorld();
      let [seen, cuts] = [0, 0];
      proxy[at]("", (connection) => {
        if (++seen % 13 !== 0) return;
        cuts++;
        connection.cut();
      });
      const tps = range(3).map(() => scene.tp({ through: proxy, storeTimeoutMs: 60_000 }));
      const keys = range(60).map((index) => `order:${index}`);
      const results = await Promise.all(
        tps.map((tp) => Promise.all(keys.map((key) => tp.once(key, () => world.act(key), { waitMs: 60_000 })))),
      );
      expect(results[0]).toMatchObject(keys.map((key) => ({ key })));
      for (const others of results) expect(others).toEqual(results[0]);
      expect(keys.map(world.acts)).toEqual(keys.map(() => 1));
      expect(cuts).toBeGreaterThan(3);
    },
  );
});
