import { notDone } from "@twiceproof/core";
import { describeOn } from "@twiceproof/test-servers/vitest";
import { describe, expect, it, type TestContext } from "vitest";
import { newest, newWorld, rejection, type Scene, type Source, sceneOn, until } from "./support.ts";

const key = "order:1";
const hourMs = 3_600_000;

/** What all statements of its stores take for the server's clock. Only the difference to the true one is set. */
interface ServerClock {
  connect(): Source;
  set(offsetMs: number): Promise<void>;
}

/** Before PostgreSQL's own function comes one of the same name, in the path of these sessions alone. */
async function postgresClock(scene: Scene): Promise<ServerClock> {
  const other = await scene.other();
  await other.query(`create schema fake;
    create table fake.clock (offset_ms bigint not null);
    insert into fake.clock values (0);
    create function fake.clock_timestamp() returns timestamptz language sql volatile as
      $$ select pg_catalog.clock_timestamp() + (select offset_ms from fake.clock) * interval '1 millisecond' $$`);
  return {
    connect: () => scene.connect({ session: "-c search_path=fake,pg_catalog" }),
    set: async (offsetMs) => void (await other.query(`update fake.clock set offset_ms = ${offsetMs}`)),
  };
}

/** A session's clock can be set, and then stands: it is set anew until the test is over. One connection for each store. */
function mysqlClock(scene: Scene, { onTestFinished }: TestContext): ServerClock {
  const sources: Source[] = [];
  let offset = 0;
  let isOver = false;
  const set = () =>
    Promise.all(sources.map((source) => source.query(`set timestamp = ${(Date.now() + offset) / 1000}`)));
  const ticking = (async () => {
    while (!isOver) {
      await set();
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  })();
  onTestFinished(async () => {
    isOver = true;
    await ticking;
  });
  return {
    connect() {
      const source = scene.connect({ connections: 1 });
      sources.push(source);
      return source;
    },
    async set(offsetMs) {
      offset = offsetMs;
      await set();
    },
  };
}

// Those of the servers side by side: they mostly wait.
describe.concurrent("clocks", () => {
  describeOn(newest, "the server's clock", (server) => {
    async function stage(context: TestContext) {
      const scene = await sceneOn(server, context, "its own");
      const clock = scene.isPostgres ? await postgresClock(scene) : mysqlClock(scene, context);
      const [first, second] = [clock.connect(), clock.connect()];
      const [tp, other] = [scene.tp({ store: first.store }), scene.tp({ store: second.store })];
      const { now } = await first.store.health();
      await clock.set(hourMs);
      // It is really this clock that the store asks.
      expect((await first.store.health()).now - now).toBeGreaterThanOrEqual(hourMs);
      await clock.set(0);
      const read = async () => (await second.store.get([(await scene.record(key))?.id ?? "0".repeat(64)]))[0];
      return { scene, clock, tp, other, read, world: newWorld() };
    }

    /** An effect that runs until it is told to end. */
    function held({ tp, world }: Pick<Awaited<ReturnType<typeof stage>>, "tp" | "world">, leaseMs: number) {
      const end = Promise.withResolvers<void>();
      const result = tp.once(
        key,
        async () => {
          const value = world.act(key);
          await end.promise;
          return value;
        },
        { leaseMs },
      );
      return { result, end: end.resolve, begun: () => until("the body", () => world.acts(key) === 1) };
    }

    it.concurrent("2: set forward: who lives is in doubt to others until the next beat, is never run again, and completes", async (context) => {
      const { clock, other, read, tp, world } = await stage(context);
      const call = held({ tp, world }, 60_000);
      await call.begun();
      await clock.set(hourMs);
      expect((await read())?.state).toBe("in-doubt");
      expect(await rejection(other.once(key, () => world.act(key)))).toMatchObject({ code: "EFFECT_IN_DOUBT" });
      call.end();
      const value = await call.result;
      expect(await other.once(key, () => world.act(key))).toEqual(value);
      expect(world.acts(key)).toBe(1);
    });

    it.concurrent("9: set forward: the next beat renews the lease by the new clock", async (context) => {
      const { clock, read, tp, world } = await stage(context);
      const call = held({ tp, world }, 3_000);
      await call.begun();
      await clock.set(hourMs);
      await until("a beat", async () => (await read())?.state === "claimed");
      const record = await read();
      expect((record?.leaseUntil ?? 0) - (record?.readAt ?? 0)).toBeLessThanOrEqual(3_000);
      call.end();
      expect(await call.result).toMatchObject({ key });
      expect(world.acts(key)).toBe(1);
    });

    it.concurrent("9: set back: the lease only grows longer; its holder goes on, and completes", async (context) => {
      const { clock, other, read, tp, world } = await stage(context);
      const call = held({ tp, world }, 1_500);
      await call.begun();
      const before = await read();
      await clock.set(-hourMs);
      await until("two beats", async () => ((await read())?.version ?? 0) >= (before?.version ?? 0) + 2);
      expect(await read()).toMatchObject({ state: "claimed", leaseUntil: expect.any(Number) });
      expect((await read())?.leaseUntil).toBeGreaterThanOrEqual(before?.leaseUntil ?? 0);
      expect(await rejection(other.once(key, () => world.act(key), { waitMs: 0 }))).toMatchObject({
        code: "EFFECT_RUNNING",
      });
      call.end();
      const value = await call.result;
      expect(await other.once(key, () => world.act(key))).toEqual(value);
      expect(world.acts(key)).toBe(1);
    });

    it.concurrent("2: set back under a dead holder: it counts as running for longer, and is in doubt after that", async (context) => {
      const { clock, other, tp, read, scene, world } = await stage(context);
      await tp.once("order:2", () => null);
      const { fingerprint = "" } = (await scene.record("order:2")) ?? {};
      // Nobody beats for this claim.
      const dead = scene.request("effect", key, { leaseMs: 1_000, fingerprint });
      await tp.store.claim([dead]);
      await clock.set(-hourMs);
      expect(await read()).toMatchObject({ state: "claimed" });
      const call = other.once(key, () => world.act(key), { waitMs: 0 });
      expect(await rejection(call)).toMatchObject({ code: "EFFECT_RUNNING" });
      await clock.set(hourMs);
      expect(await rejection(other.once(key, () => world.act(key)))).toMatchObject({ code: "EFFECT_IN_DOUBT" });
      await clock.set(-hourMs);
      const [doubt] = (await other.doubts.list()).doubts;
      // A doubt is not kept in the row: by the clock that was set back, it is none yet.
      expect(doubt).toBeUndefined();
      await clock.set(hourMs);
      const [later] = (await other.doubts.list()).doubts;
      if (later === undefined) throw new Error("no doubt");
      expect(await other.doubts.resolve(later, notDone(), { who: "ana", why: "asked" })).toBe("applied");
      await clock.set(-hourMs);
      expect(await other.once(key, () => world.act(key))).toMatchObject({ key });
      expect(await read()).toMatchObject({ state: "completed", token: 2 });
      expect(world.acts(key)).toBe(1);
    });

    it.concurrent("14: set forward: a run that was replaced meanwhile can start nothing more, and is told", async (context) => {
      const { clock, tp, other, world } = await stage(context);
      const inside = Promise.withResolvers<void>();
      const go = Promise.withResolvers<void>();
      const run = tp.withRun({ thread: "t", runId: "first", leaseMs: 60_000 }, async ({ once }) => {
        inside.resolve();
        await go.promise;
        return await once(key, () => world.act(key));
      });
      await inside.promise;
      await expect(other.withRun({ thread: "t" }, () => "early")).rejects.toMatchObject({ code: "THREAD_BUSY" });
      await clock.set(hourMs);
      expect(await other.withRun({ thread: "t", runId: "second" }, ({ token }) => token)).toBe(2);
      go.resolve();
      expect(await rejection(run)).toMatchObject({ code: "RUN_LOST" });
      expect(world.acts(key)).toBe(0);
    });

    it.concurrent("10: set forward and back: retention removes nothing that is alive, and nothing settled before its time", async (context) => {
      const { clock, tp, read, world, scene } = await stage(context);
      await tp.once("order:2", () => world.act("order:2"));
      const call = held({ tp, world }, 60_000);
      await call.begun();
      const settled = async () => (await scene.record("order:2")) !== null;
      const prune = () => tp.store.prune({ namespace: scene.namespace, olderThanMs: hourMs, limit: 10 });
      await clock.set(-2 * hourMs);
      expect([await prune(), await settled()]).toEqual([0, true]);
      await clock.set(2 * hourMs);
      expect([await prune(), await settled()]).toEqual([1, false]);
      expect(await read()).toMatchObject({ key });
      call.end();
      expect(await call.result).toMatchObject({ key });
    });
  });
});
