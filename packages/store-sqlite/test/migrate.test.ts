import { DatabaseSync } from "node:sqlite";
import Database from "better-sqlite3";
import { expect, it } from "vitest";
import { child } from "./child.ts";
import { effect, opened, rejection, scratchFile, storeOf, win } from "./scratch.ts";

const schema = "select name, sql from sqlite_schema order by name";
const versions = "select version from twiceproof_schema order by version";

it("creates the schema in a fresh file, and once", async () => {
  const file = scratchFile();
  const store = storeOf(file);
  await store.migrate();
  const db = opened(new Database(file));
  const created = db.prepare(schema).all() as { name: string }[];
  expect(created.map(({ name }) => name).filter((name) => !name.startsWith("sqlite_"))).toEqual([
    "twiceproof_claims",
    "twiceproof_claims_created",
    "twiceproof_history",
    "twiceproof_history_claim",
    "twiceproof_line",
    "twiceproof_schema",
  ]);
  await store.migrate();
  await storeOf(opened(new Database(file))).migrate();
  expect(db.prepare(schema).all()).toEqual(created);
  expect(db.prepare(versions).all()).toEqual([{ version: 1 }]);
});

it("writes nothing when the schema is there", async () => {
  const file = scratchFile();
  await storeOf(file).migrate();
  const db = opened(new Database(file));
  const before = db.pragma("data_version");
  await storeOf(opened(new Database(file))).migrate();
  expect(db.pragma("data_version")).toEqual(before);
});

it("keeps to its own tables in a database of the application", async () => {
  const db = opened(new DatabaseSync(scratchFile()));
  db.exec("create table orders (id integer primary key); insert into orders values (7)");
  await win(storeOf(db), effect("order:7"));
  expect(db.prepare("select id from orders").all()).toEqual([{ id: 7 }]);
});

it("is made once by several processes that start together", async () => {
  const file = scratchFile();
  const children = [1, 2, 3, 4].map(() => child("migrate", file));
  for (const each of children) expect(await each.line()).toBe('"ready"');
  for (const each of children) each.go();
  for (const each of children) expect(await each.line()).toBe("[]");
  expect(opened(new Database(file)).prepare(versions).all()).toEqual([{ version: 1 }]);
});

it("refuses a schema that a newer version wrote, and changes nothing", async () => {
  const file = scratchFile();
  const db = opened(new Database(file));
  await storeOf(db).migrate();
  db.exec("insert into twiceproof_schema (version, at) values (99, 0)");
  const changes = db.prepare("select total_changes() as changes");
  const before = changes.get();
  for (const source of [file, db])
    expect(await rejection(storeOf(source).claim([effect("order:1")]))).toMatchObject({
      code: "STORE_SCHEMA_NEWER",
      message: expect.stringContaining("upgrade @twiceproof/store-sqlite"),
    });
  expect(changes.get()).toEqual(before);
  expect(db.prepare("select count(*) as rows from twiceproof_claims").get()).toEqual({ rows: 0 });
});
