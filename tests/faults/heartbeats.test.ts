import { describeOn } from "@twiceproof/test-servers/vitest";
import { describe, expect, it } from "vitest";
import { newest, newWorld, range, sceneOn, until } from "./support.ts";

// Those of the servers side by side: they mostly wait.
describe.concurrent("heartbeats", () => {
  describeOn(newest, "a heartbeat", (server) => {
    it.concurrent.for([10, 4, 1])(
      "16: with one row that somebody has locked: no other lapses, and it goes on when it can: a pool of %i",
      async (connections, context) => {
        const leaseMs = 3_000;
        const scene = await sceneOn(server, context);
        const { claims, is } = scene;
        const world = newWorld();
        const tp = scene.tp({ connections });
        const end = Promise.withResolvers<void>();
        const keys = range(12).map((index) => `order:${index}`);
        const calls = keys.map((key) =>
          tp.once(
            key,
            async () => {
              world.act(key);
              await end.promise;
              return key;
            },
            { leaseMs },
          ),
        );
        await until("all bodies", () => world.all.size === keys.length);
        const read = () => Promise.all(keys.map((key) => scene.record(key)));
        const blocked = (await scene.record("order:7"))?.id ?? "";
        const other = await scene.other();
        if (!scene.isPostgres) await other.query("set session transaction isolation level read committed");
        await other.query("begin");
        await other.query(`select version from ${claims} where ${is("id", blocked)} for update`);
        const before = (await read()).map((record) => record?.version ?? 0);
        const lapsed = new Set<string>();
        await until("three beats of all, and the end of one lease", async () => {
          const records = await read();
          for (const record of records) if (record?.state === "in-doubt") lapsed.add(record.key);
          const beats = records.map((record, index) => (record?.version ?? 0) - (before[index] ?? 0));
          return lapsed.has("order:7") && beats.every((count, index) => index === 7 || count >= 3);
        });
        expect([...lapsed]).toEqual(["order:7"]);
        await other.query("rollback");
        await until("a beat of the one that lapsed", async () => (await scene.record("order:7"))?.state === "claimed");
        end.resolve();
        expect(await Promise.all(calls)).toEqual(keys);
        for (const record of await read()) expect(record).toMatchObject({ state: "completed", token: 1 });
        expect(keys.map(world.acts)).toEqual(keys.map(() => 1));
      },
    );
  });
});

describeOn(newest, "a run", (server) => {
  it.concurrent.for([{ connections: 4 }, { connections: 1 }, { connections: 4, level: "serializable" }] as const)(
    "14: of a run that makes effects at full speed: no beat is lost, and the run is not: %o",
    async (connecting, context) => {
      const leaseMs = 2_400;
      const scene = await sceneOn(server, context);
      const world = newWorld();
      const tp = scene.tp(connecting);
      let over = false;
      let made = 0;
      const run = tp.withRun({ thread: "t", leaseMs }, async ({ once, signal }) => {
        const lane = async (name: number): Promise<void> => {
          for (let index = 0; !over && !signal.aborted; index++, made++) {
            const key = `order:${name}:${index}`;
            await once(key, () => world.act(key));
          }
        };
        await Promise.all(range(8).map(lane));
        signal.throwIfAborted();
        return "stored";
      });
      const states = new Set<string>();
      await until("four beats of the run", async () => {
        const lock = await scene.record("t", "thread");
        if (lock !== null) states.add(lock.state);
        return (lock?.version ?? 0) > 4;
      });
      over = true;
      expect(await run).toBe("stored");
      expect([...states]).toEqual(["claimed"]);
      expect(made).toBeGreaterThan(50);
      expect(world.all.size).toBe(made);
      expect([...world.all.values()].every((acts) => acts === 1)).toBe(true);
      expect(await scene.record("t", "thread")).toMatchObject({ state: "released", token: 1 });
    },
  );
});

describeOn(newest, "a pool with one connection", (server) => {
  it.concurrent("1: of fifty callers of ten keys, each gets the one result of its key", async (context) => {
    const scene = await sceneOn(server, context);
    const world = newWorld();
    const tp = scene.tp({ connections: 1 });
    const keys = range(50).map((index) => `order:${index % 10}`);
    const results = await Promise.all(keys.map((key) => tp.once(key, () => world.act(key))));
    for (const [index, key] of keys.entries()) {
      expect(results[index]).toMatchObject({ key });
      expect(results[index]).toEqual(results[index % 10]);
    }
    expect([...world.all.values()]).toEqual(range(10).map(() => 1));
  });

  it.concurrent("1: fifty callers in runs and locks of their own, with heartbeats, do not wait for each other", async (context) => {
    const scene = await sceneOn(server, context);
    const world = newWorld();
    const tp = scene.tp({ connections: 1, storeTimeoutMs: 60_000 });
    const other = scene.tp({ connections: 1, storeTimeoutMs: 60_000 });
    const results = await Promise.all(
      range(50).map((index) => {
        const [mine, key] = [index % 2 === 0 ? tp : other, `order:${index}`];
        return index % 5 === 0
          ? mine.exclusive(key, () => world.act(key), { leaseMs: 2_000 })
          : mine.withRun({ thread: key, leaseMs: 2_000 }, (run) =>
              run.once(key, () => world.act(key), { leaseMs: 2_000 }),
            );
      }),
    );
    expect(results).toMatchObject(range(50).map((index) => ({ key: `order:${index}` })));
    expect([...world.all.values()]).toEqual(range(50).map(() => 1));
  });
});
