import { createDatabase, startServer } from "@twiceproof/test-servers";
import { describeOn } from "@twiceproof/test-servers/vitest";
import { createPool } from "mysql2/promise";
import { describe, expect, it, onTestFinished } from "vitest";
import { storeError } from "../src/errors.ts";
import { isTooOld } from "../src/health.ts";
import { mysqlStore } from "../src/index.ts";
import {
  complete,
  connectionOn,
  effect,
  poolOn,
  rejection,
  scratchUrl,
  someWait,
  storeOn,
  waiting,
  win,
} from "./support/scratch.ts";

describeOn(["mariadb", "mysql"], "what goes wrong", (server) => {
  it("a server that is not there is unavailable, with the driver's error as its cause", async () => {
    const store = mysqlStore(poolOn("mysql://root@127.0.0.1:1/test"));
    const error = await rejection(store.claim([effect("order:1")]));
    expect(error).toMatchObject({
      code: "STORE_UNAVAILABLE",
      cause: expect.objectContaining({ code: "ECONNREFUSED" }),
    });
    expect((error as Error).message).not.toContain("127.0.0.1");
  });

  it("a pool that was closed, and a store that was", async () => {
    const url = await scratchUrl(server.url);
    const pool = createPool(url);
    const store = mysqlStore(pool);
    await store.migrate();
    await store.close();
    expect(await rejection(store.get([effect("order:1").id]))).toMatchObject({ code: "STORE_CLOSED" });
    expect((await pool.query("select 1 as one"))[0]).toEqual([{ one: 1 }]);
    const other = mysqlStore(pool);
    await pool.end();
    expect(await rejection(other.get([effect("order:1").id]))).toMatchObject({ code: "STORE_CLOSED" });
  });

  it("a session that may only read", async () => {
    const url = await scratchUrl(server.url);
    await storeOn(url);
    const store = mysqlStore(poolOn(url, {}, "transaction read only"));
    expect(await rejection(store.claim([effect("order:1")]))).toMatchObject({ code: "STORE_READ_ONLY" });
  });

  it("a connection that is killed under a statement: nothing is lost, and the same attempt is told so", async () => {
    const url = await scratchUrl(server.url);
    const store = await storeOn(url, { connectionLimit: 2 });
    const other = await connectionOn(url);
    const ref = await win(store, effect("order:1"));
    await other.query("set session transaction isolation level read committed");
    await other.query("start transaction");
    await other.query("select id from twiceproof_claims for update");
    const settlement = { ...ref, state: "completed" as const, payload: null };
    const failed = rejection(store.settle([settlement]));
    await someWait(other);
    for (const thread of await waiting(other)) await other.query(`kill ${thread}`);
    expect(await failed).toMatchObject({ code: "STORE_UNAVAILABLE" });
    await other.query("rollback");
    expect(await store.settle([settlement])).toEqual(["settled"]);
    expect(await store.settle([settlement])).toEqual(["already"]);
  });

  it("a transaction of the application on the store's connection gets nothing of ours, and loses nothing", async () => {
    const url = await scratchUrl(server.url);
    const connection = await connectionOn(url);
    const store = mysqlStore(connection);
    await store.migrate();
    const held = await win(store, effect("held"));
    await connection.query("create table orders (id int primary key)");
    await connection.query("start transaction");
    await connection.query("insert into orders values (7)");
    for (const asked of [
      () => store.claim([effect("order:7")]),
      () => store.claim([effect("order:7"), effect("order:8")]),
      () => store.renew([{ ...held, leaseMs: 60_000 }]),
      () => store.settle([{ ...held, state: "completed", payload: null }]),
      () => store.abandon(held, "shutdown"),
      () => store.get([held.id]),
    ])
      expect(await rejection(asked())).toMatchObject({
        code: "STORE_UNAVAILABLE",
        message: expect.stringContaining("transaction of the application"),
        help: expect.stringContaining("pool"),
      });
    await connection.query("rollback");
    expect((await connection.query("select id from orders"))[0]).toEqual([]);
    expect((await win(store, effect("order:7"))).token).toBe(1);
    await complete(store, held);
  });

  it("a pool without autocommit is refused before anything is claimed", async () => {
    const url = await scratchUrl(server.url);
    await storeOn(url);
    const store = mysqlStore(poolOn(url, {}, "autocommit = 0"));
    expect(await rejection(store.claim([effect("order:1")]))).toMatchObject({
      code: "STORE_UNAVAILABLE",
      help: expect.stringContaining("autocommit"),
    });
    expect(await (await storeOn(url)).get([effect("order:1").id])).toEqual([null]);
  });

  it("health has nothing to say of a durable server, and names what is not", async () => {
    const database = await createDatabase(server.url);
    const store = await storeOn(database.url);
    const { now, warnings } = await store.health();
    expect(now).toBeGreaterThan(Date.UTC(2024));
    expect(warnings.every((warning) => /^[A-Za-z_].*\.$/.test(warning))).toBe(true);
    await database.drop();
  });
});

describe("errors of the driver", () => {
  const said = (errno: number) => Object.assign(new Error("said by the server"), { errno, code: `ER_${errno}` });

  it.each([
    [1290, "STORE_READ_ONLY"],
    [1836, "STORE_READ_ONLY"],
    [1146, "STORE_SCHEMA_MISSING"],
    [1040, "STORE_UNAVAILABLE"],
    [1021, "STORE_UNAVAILABLE"],
    [3675, "STORE_UNAVAILABLE"],
    [1213, "STORE_UNAVAILABLE"],
    [1205, "STORE_UNAVAILABLE"],
    [1064, "STORE_UNAVAILABLE"],
  ])("%i becomes %s, with its cause", (errno, code) => {
    const cause = said(errno);
    expect(storeError(cause)).toMatchObject({ code, cause });
  });

  it("what is not the driver's passes as it is", () => {
    const error = new TypeError("a mistake of ours");
    expect(storeError(error)).toBe(error);
  });
});

it.each([
  ["8.0.36", false],
  ["9.7.4-2", false],
  ["5.7.44-log", true],
  ["10.11.19-MariaDB-0+deb12u1-log", false],
  ["10.5.29-MariaDB", true],
  ["11.8.2-MariaDB", false],
])("the floor of the supported versions: %s", (version, tooOld) => {
  expect(isTooOld(version)).toBe(tooOld);
});

describeOn(["mariadb", "mysql"], "a server that is set up badly", ({ name }) => {
  it("is named by health, and when it accepts no writes, by what is asked of it", { timeout: 180_000 }, async () => {
    const settings = {
      "innodb-flush-log-at-trx-commit": "2",
      "log-bin": "binlog",
      "server-id": "1",
      "sync-binlog": "0",
    };
    const own = await startServer(name, { settings });
    onTestFinished(() => own.stop());
    const url = await scratchUrl(own.url);
    const store = await storeOn(url);
    const admin = await connectionOn(url);
    const worker = new URL(url);
    await admin.query("create user worker@'%'");
    await admin.query(`grant all on ${worker.pathname.slice(1)}.* to worker@'%'`);
    [worker.username, worker.password] = ["worker", ""];
    const found = await store.health();
    expect(found.warnings).toEqual([
      expect.stringContaining("innodb_flush_log_at_trx_commit"),
      expect.stringContaining("sync_binlog"),
    ]);
    await admin.query("set global read_only = 1");
    expect((await store.health()).warnings).toContainEqual(expect.stringContaining("read-only"));
    const asked = mysqlStore(poolOn(worker.href)).claim([effect("order:1")]);
    expect(await rejection(asked)).toMatchObject({ code: "STORE_READ_ONLY", cause: { errno: 1290 } });
    await admin.query("set global read_only = 0");
  });
});
