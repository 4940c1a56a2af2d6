import { createDatabase, startPgBouncer } from "@twiceproof/test-servers";
import { sharedServer } from "@twiceproof/test-servers/vitest";
import { Client } from "pg";
import { expect, test } from "vitest";
import { query } from "../src/probe.ts";

test("PgBouncer lends one connection to many clients, each transaction", { timeout: 300_000 }, async () => {
  const database = await createDatabase(sharedServer("postgres").url);
  const pooler = await startPgBouncer(database.url);
  expect(pooler.version).toMatch(/\d+\.\d+/);
  const clients = [new Client(pooler.url), new Client(pooler.url)];
  for (const client of clients) {
    await client.connect();
    const { rows } = await client.query("select current_database() as name");
    expect(rows).toEqual([{ name: database.name }]);
  }
  const pids = [];
  for (const client of clients) pids.push((await client.query("select pg_backend_pid() as pid")).rows[0].pid);
  expect(pids[0]).toBe(pids[1]);
  for (const client of clients) await client.end();
  await pooler.stop();
  await expect(query(pooler.url, "select 1")).rejects.toThrow("ECONNREFUSED");
  await database.drop();
});
