import { describeOn } from "@twiceproof/test-servers/vitest";
import { describe, expect, it, type TestContext } from "vitest";
import { newest, newWorld, rejection, type Scene, sceneOn, until } from "./support.ts";

const storeTimeoutMs = 600;
const key = "order:1";

// Those of the servers side by side: they mostly wait.
describe.concurrent("answers and requests that do not come", () => {
  describeOn(newest, "a server that is silent", (server) => {
    async function stage(context: TestContext) {
      const scene = await sceneOn(server, context);
      const proxy = await scene.proxy();
      const tp = scene.tp({ through: proxy, storeTimeoutMs });
      await tp.once("warm", () => null);
      return { scene, proxy, tp, world: newWorld() };
    }

    /** As when the network comes back: what was under way is over. */
    const mend = (proxy: Awaited<ReturnType<Scene["proxy"]>>): void => {
      proxy.pass();
      proxy.cut();
    };

    for (const direction of ["requests", "answers"] as const) {
      it.concurrent(`17: ${direction} are lost before the effect: it does not run, and is not in doubt later`, async (context) => {
        const { scene, proxy, tp, world } = await stage(context);
        proxy.swallow(direction);
        expect(await rejection(tp.once(key, () => world.act(key)))).toMatchObject({
          code: "STORE_UNAVAILABLE",
          message: expect.stringContaining("Nothing was executed"),
        });
        expect(world.acts(key)).toBe(0);
        mend(proxy);
        // A claim that landed unnoticed is taken back.
        await until("a free key", async () => ["released", undefined].includes((await scene.record(key))?.state));
        expect(await scene.tp().once(key, () => world.act(key))).toMatchObject({ key });
        expect(world.acts(key)).toBe(1);
      });

      it.concurrent(`17: ${direction} are lost after the effect, for long: the caller has the value, and nobody runs it again`, async (context) => {
        const { scene, proxy, tp, world } = await stage(context);
        const call = tp.once(
          key,
          () => {
            proxy.swallow(direction);
            return world.act(key);
          },
          { leaseMs: 1_000 },
        );
        const error = (await rejection(call)) as { readonly code: string; readonly value: unknown };
        expect(error).toMatchObject({ code: "EFFECT_IN_DOUBT", value: { key } });
        mend(proxy);
        const seen = await scene
          .tp()
          .once(key, () => world.act(key))
          .catch((told: unknown) => told);
        // On record if it landed: perhaps late, from a pool's line; perhaps not, when what prepares it was not answered.
        if (seen instanceof Error) expect(seen).toMatchObject({ code: "EFFECT_IN_DOUBT" });
        else expect(seen).toEqual(error.value);
        expect(world.acts(key)).toBe(1);
      });

      it.concurrent(`17: ${direction} are lost after the effect, for a moment: it is recorded`, async (context) => {
        const { scene, proxy, tp, world } = await stage(context);
        const call = tp.once(key, () => {
          proxy.swallow(direction);
          setTimeout(() => mend(proxy), storeTimeoutMs);
          return world.act(key);
        });
        expect(await call).toMatchObject({ key });
        expect(await scene.record(key)).toMatchObject({ state: "completed", token: 1, version: 2 });
        expect(world.acts(key)).toBe(1);
      });
    }

    it.concurrent("17: answers that come too late before the effect: it does not run, and the key is freed", async (context) => {
      const { scene, proxy, tp, world } = await stage(context);
      proxy.delay(2 * storeTimeoutMs);
      expect(await rejection(tp.once(key, () => world.act(key)))).toMatchObject({ code: "STORE_UNAVAILABLE" });
      await until("a key that was freed", async () => (await scene.record(key))?.state === "released");
      expect(world.acts(key)).toBe(0);
      proxy.pass();
      expect(await tp.once(key, () => world.act(key))).toMatchObject({ key });
      expect(await scene.record(key)).toMatchObject({ token: 2 });
      expect(world.acts(key)).toBe(1);
    });

    it.concurrent("17: answers that come late after the effect, and in time: it is recorded", async (context) => {
      const { scene, proxy, tp, world } = await stage(context);
      const call = tp.once(key, () => {
        proxy.delay(2 * storeTimeoutMs);
        return world.act(key);
      });
      expect(await call).toMatchObject({ key });
      expect(await scene.record(key)).toMatchObject({ state: "completed", token: 1, version: 2 });
      expect(world.acts(key)).toBe(1);
    });

    it.concurrent("17: that lets nobody in any more: before the effect it does not run, after it it is in doubt", async (context) => {
      const { scene, proxy, tp, world } = await stage(context);
      const call = tp.once("order:2", () => {
        proxy.refuse();
        proxy.cut();
        return world.act("order:2");
      });
      expect(await rejection(call)).toMatchObject({ code: "EFFECT_IN_DOUBT", value: { key: "order:2" } });
      expect(await rejection(tp.once(key, () => world.act(key)))).toMatchObject({ code: "STORE_UNAVAILABLE" });
      expect([...world.all]).toEqual([["order:2", 1]]);
      proxy.pass();
      expect(await tp.once(key, () => world.act(key))).toMatchObject({ key });
      expect(await scene.record("order:2")).toMatchObject({ state: "claimed", token: 1 });
    });
  });
});
