import { describeOn } from "@twiceproof/test-servers/vitest";
import type { Connection } from "mysql2/promise";
import { describe, expect, it } from "vitest";
import { mysqlStore, printMigrations } from "../src/index.ts";
import { child } from "./support/child.ts";
import { connectionOn, effect, poolOn, rejection, scratchUrl, win } from "./support/scratch.ts";

const versions = "select version from twiceproof_schema order by version";

async function tables(connection: Connection): Promise<readonly string[]> {
  const [rows] = await connection.query(
    "select table_name as name from information_schema.tables where table_schema = database() order by table_name",
  );
  return (rows as { name: string }[]).map(({ name }) => name);
}

async function shapes(connection: Connection, prefix: string): Promise<readonly string[]> {
  const made: string[] = [];
  for (const name of ["claims", "history", "line", "schema"]) {
    const [rows] = await connection.query(`show create table ${prefix}${name}`);
    made.push(String((rows as Record<string, string>[])[0]?.["Create Table"]).replaceAll(prefix, ""));
  }
  return made;
}

describeOn(["mariadb", "mysql"], "migrate", (server) => {
  it("makes four tables, once", async () => {
    const url = await scratchUrl(server.url);
    const connection = await connectionOn(url);
    const store = mysqlStore(poolOn(url));
    for (let times = 0; times < 2; times++) {
      await store.migrate();
      const names = ["claims", "history", "line", "schema"];
      expect(await tables(connection)).toEqual(names.map((name) => `twiceproof_${name}`));
      expect((await connection.query(versions))[0]).toEqual([{ version: 1 }]);
    }
  });

  it("does the same as its printed form, which may be run again", async () => {
    const url = await scratchUrl(server.url);
    const connection = await connectionOn(url);
    const printed = printMigrations({ prefix: "printed_" });
    for (let times = 0; times < 2; times++)
      for (const statement of printed.split(";\n").filter((text) => text.trim() !== ""))
        await connection.query(statement);
    await mysqlStore(connection, { prefix: "made_" }).migrate();
    expect(await shapes(connection, "printed_")).toEqual(await shapes(connection, "made_"));
    expect((await win(mysqlStore(poolOn(url), { prefix: "printed_" }), effect("order:1"))).token).toBe(1);
  });

  it("is done once by several processes that start together", { timeout: 30_000 }, async () => {
    const url = await scratchUrl(server.url);
    const children = [1, 2, 3, 4].map(() => child("migrate", url));
    for (const each of children) expect(await each.line()).toBe('"ready"');
    for (const each of children) each.go();
    for (const each of children) expect(JSON.parse(await each.line())).toEqual(expect.any(Array));
    expect((await (await connectionOn(url)).query(versions))[0]).toEqual([{ version: 1 }]);
  });

  it("is asked for when the tables are missing, before and after", async () => {
    const url = await scratchUrl(server.url);
    const store = mysqlStore(poolOn(url));
    const missing = { code: "STORE_SCHEMA_MISSING", help: expect.stringContaining("store.migrate()") };
    expect(await rejection(store.claim([effect("order:1")]))).toMatchObject(missing);
    await store.migrate();
    expect((await win(store, effect("order:1"))).token).toBe(1);
    await (await connectionOn(url)).query("drop table twiceproof_claims");
    expect(await rejection(store.claim([effect("order:2")]))).toMatchObject(missing);
  });

  it("is refused, like everything else, on a schema that a newer version made", async () => {
    const url = await scratchUrl(server.url);
    const connection = await connectionOn(url);
    await mysqlStore(connection).migrate();
    await connection.query("insert into twiceproof_schema (version, at) values (99, 0)");
    const store = mysqlStore(poolOn(url));
    for (const ask of [() => store.claim([effect("order:1")]), store.migrate, store.health])
      expect(await rejection(ask())).toMatchObject({
        code: "STORE_SCHEMA_NEWER",
        message: expect.stringContaining("upgrade @twiceproof/store-mysql"),
      });
    expect((await connection.query("select count(*) as found from twiceproof_claims"))[0]).toEqual([{ found: 0 }]);
  });
});

describe("printMigrations", () => {
  it("quotes the prefix, and holds nothing that drops", () => {
    const printed = printMigrations({ prefix: "app_" });
    expect(printed).toContain("create table if not exists `app_claims`");
    expect(printed).not.toMatch(/drop|alter|twiceproof_/i);
  });
});
