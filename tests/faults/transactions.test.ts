import { createTwiceproof } from "@twiceproof/core";
import { mysqlStore } from "@twiceproof/store-mysql";
import { postgresStore } from "@twiceproof/store-postgres";
import { describeOn } from "@twiceproof/test-servers/vitest";
import { createConnection } from "mysql2/promise";
import { Client } from "pg";
import { describe, expect, it, type TestContext } from "vitest";
import { everywhere, newWorld, rejection, sceneOn } from "./support.ts";

const key = "order:1";

// Those of the servers side by side: they mostly wait.
describe.concurrent("open transactions", () => {
  describeOn(everywhere, "a connection that is inside of the caller's transaction", (server) => {
    /** One connection, which the application and the store share. */
    async function stage(context: TestContext) {
      const scene = await sceneOn(server, context, "its own");
      const world = newWorld();
      if (scene.isPostgres) {
        const client = new Client(scene.url);
        await client.connect();
        context.onTestFinished(() => client.end());
        const query = async (text: string) => void (await client.query(text));
        return { scene, world, query, store: postgresStore(client) };
      }
      const connection = await createConnection(scene.url);
      context.onTestFinished(() => connection.end());
      const query = async (text: string) => void (await connection.query(text));
      return { scene, world, query, store: mysqlStore(connection) };
    }

    it.concurrent("17: nothing is claimed, nothing runs, and nothing is written into it", async (context) => {
      const { scene, world, query, store } = await stage(context);
      const tp = createTwiceproof({ namespace: scene.namespace, store, storeTimeoutMs: 700 });
      await query("create table mine (id int primary key)");
      await query("begin");
      await query("insert into mine values (1)");
      const error = await rejection(tp.once(key, () => world.act(key)));
      expect(error).toMatchObject({ code: "STORE_UNAVAILABLE" });
      // PostgreSQL's store waits for its end, for longer than this caller does.
      if (!scene.isPostgres) expect(error).toMatchObject({ message: expect.stringContaining("inside a transaction") });
      expect(world.acts(key)).toBe(0);
      // It has neither been committed nor rolled back by us.
      const outside = await scene.other();
      expect(await outside.query("select * from mine")).toEqual([]);
      await query("insert into mine values (2)");
      await query("commit");
      expect(await outside.query("select id from mine order by id")).toEqual([{ id: 1 }, { id: 2 }]);
      expect(await tp.once(key, () => world.act(key))).toMatchObject({ key });
      expect(world.acts(key)).toBe(1);
    });

    it.concurrent("17: that ends soon: the effect runs after it, and outlives it", async (context) => {
      const { scene, world, query, store } = await stage(context);
      const tp = createTwiceproof({ namespace: scene.namespace, store });
      await query("begin");
      const call = tp.once(key, () => world.act(key));
      const outside = await scene.other();
      for (let looks = 0; looks < 5; looks++) {
        expect(await outside.query(`select * from ${scene.claims}`)).toEqual([]);
        expect(world.acts(key)).toBe(0);
      }
      await query("rollback");
      expect(await call).toMatchObject({ key });
      expect(await scene.record(key)).toMatchObject({ state: "completed", token: 1 });
    });

    it.concurrent("17: that begins in the body: the record waits for its end, and is not rolled back with it", async (context) => {
      const { scene, world, query, store } = await stage(context);
      const tp = createTwiceproof({ namespace: scene.namespace, store });
      const call = tp.once(key, async () => {
        await query("begin");
        return world.act(key);
      });
      const outside = await scene.other();
      while (world.acts(key) === 0) await outside.query("select 1");
      expect((await scene.record(key))?.state).toBe("claimed");
      await query("rollback");
      const value = await call;
      expect(await scene.record(key)).toMatchObject({ state: "completed", token: 1 });
      expect(await tp.once(key, () => world.act(key))).toEqual(value);
      expect(world.acts(key)).toBe(1);
    });
  });
});

describeOn(everywhere, "a pool whose connections are in callers' transactions", (server) => {
  it.concurrent("1: the record is made apart from them: a rollback forgets nothing", async (context) => {
    const scene = await sceneOn(server, context, "its own");
    const world = newWorld();
    const tp = scene.tp();
    const other = await scene.other();
    await other.query("create table mine (id int primary key)");
    await other.query("begin");
    await other.query("insert into mine values (1)");
    const value = await tp.once(key, () => world.act(key));
    await other.query("rollback");
    expect(await tp.once(key, () => world.act(key))).toEqual(value);
    expect(world.acts(key)).toBe(1);
  });
});
