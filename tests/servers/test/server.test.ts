import { existsSync } from "node:fs";
import { createDatabase, type OwnServer, startServer } from "@twiceproof/test-servers";
import { describeOn } from "@twiceproof/test-servers/vitest";
import { afterAll, beforeAll, expect, test } from "vitest";
import { isPostgres, probe, query } from "../src/probe.ts";
import { anyRuns } from "../src/tree.ts";

const versions = {
  postgres: /^18\./,
  "postgres-distribution": /^\d+\./,
  mariadb: /mariadb/i,
  mysql: /^(8|9)\.(?!.*maria)/i,
};

function settings(url: string): string {
  return isPostgres(url)
    ? "select current_setting('fsync') || ' ' || current_setting('synchronous_commit') as durable"
    : "select concat(@@innodb_flush_log_at_trx_commit, ' ', @@sync_binlog, ' ', if(@@log_bin, 1, 0)) as durable";
}

describeOn(["postgres", "postgres-distribution", "mariadb", "mysql"], "a shared server", (shared) => {
  test("says its version, and is durable", async () => {
    expect(shared.version).toMatch(versions[shared.name]);
    expect(await query(shared.url, settings(shared.url))).toEqual([
      { durable: isPostgres(shared.url) ? "on on" : "1 1 1" },
    ]);
  });

  test("has new databases, which can be dropped while they are used", async () => {
    const [one, two] = await Promise.all([createDatabase(shared.url), createDatabase(shared.url)]);
    expect(one.name).toMatch(/^twiceproof_test_[0-9a-f]{16}$/);
    await query(one.url, "create table t (x int)");
    await expect(query(two.url, "select * from t")).rejects.toThrow(/exist/);
    await one.drop();
    await two.drop();
    await expect(query(one.url, "select 1")).rejects.toThrow(/exist|unknown/i);
  });
});

describeOn(["postgres", "postgres-distribution", "mariadb", "mysql"], "a server of one's own", (shared) => {
  let server: OwnServer;
  beforeAll(async () => {
    server = await startServer(shared.name);
  }, 300_000);
  afterAll(() => server?.stop(), 60_000);

  test("is another one than the shared one", async () => {
    expect(server.url).not.toBe(shared.url);
    expect(server.version).toMatch(versions[shared.name]);
  });

  test("a killed one restarts with its data", { timeout: 60_000 }, async () => {
    const database = await createDatabase(server.url);
    await query(database.url, "create table t (x int)");
    await query(database.url, "insert into t values (42)");
    const { pid } = server;
    // A statement that runs must end with the server, and not after it.
    const running = expect(
      query(database.url, isPostgres(server.url) ? "select pg_sleep(60)" : "select sleep(60)"),
    ).rejects.toThrow();
    await server.kill();
    await running;
    await expect(query(server.url, "select 1")).rejects.toThrow("ECONNREFUSED");
    await server.restart();
    expect(server.pid).not.toBe(pid);
    expect(await query(database.url, "select x from t")).toEqual([{ x: 42 }]);
    await server.restart();
    expect(await query(database.url, "select x from t")).toEqual([{ x: 42 }]);
  });

  test("is gone after stop, with its data", { timeout: 60_000 }, async () => {
    const [{ dataDirectory }, { pid }] = [await probe(server.url), server];
    expect(anyRuns([pid])).toBe(true);
    await server.stop();
    expect(anyRuns([pid])).toBe(false);
    expect(existsSync(dataDirectory)).toBe(false);
    await expect(query(server.url, "select 1")).rejects.toThrow("ECONNREFUSED");
  });
});
