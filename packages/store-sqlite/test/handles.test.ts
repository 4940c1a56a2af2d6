import { existsSync, readdirSync, rmSync, symlinkSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { pathToFileURL } from "node:url";
import Database from "better-sqlite3";
import { expect, it } from "vitest";
import { sqliteStore } from "../src/index.ts";
import { child } from "./child.ts";
import { effect, opened, rejection, scratchFile, scratchFolder, storeOf, win } from "./scratch.ts";

function descriptors(): number {
  return readdirSync("/dev/fd").length;
}

it("does nothing when it is constructed, and nothing when it is closed unused", async () => {
  const folder = scratchFolder();
  const before = descriptors();
  const store = sqliteStore(join(folder, "app.db"));
  await store.close();
  expect(readdirSync(folder)).toEqual([]);
  expect(descriptors()).toBe(before);
});

it("opens one handle per file, by whatever name it is called", async () => {
  const file = scratchFile();
  await win(storeOf(file), effect("order:0"));
  const before = descriptors();
  symlinkSync(file, `${file}.link`);
  symlinkSync(dirname(file), `${file}.folder`);
  const names = [
    relative(process.cwd(), file),
    `${file}.link`,
    join(`${file}.folder`, "app.db"),
    pathToFileURL(file),
    pathToFileURL(file).href,
  ];
  for (const name of names) expect(await storeOf(name).claim([effect("order:0")])).toMatchObject([{ answer: "taken" }]);
  expect(descriptors()).toBe(before);
});

it("opens one handle when many stores come first together", async () => {
  const file = scratchFile();
  const before = descriptors();
  const stores = Array.from({ length: 10 }, () => storeOf(file));
  await Promise.all(stores.map((store, index) => win(store, effect(`order:${index}`))));
  // The file, its -wal and its -shm.
  expect(descriptors()).toBe(before + 3);
});

it("is closed by the last of its users, and can be opened again", async () => {
  const file = scratchFile();
  const before = descriptors();
  const [one, two] = [sqliteStore(file), sqliteStore(file)];
  await Promise.all([one.migrate(), two.migrate()]);
  await one.close();
  await one.close();
  expect(await rejection(one.claim([effect("order:1")]))).toMatchObject({ code: "STORE_CLOSED" });
  expect((await win(two, effect("order:1"))).token).toBe(1);
  await two.close();
  expect(descriptors()).toBe(before);
  expect(existsSync(`${file}-wal`)).toBe(false);
  const [record] = await storeOf(file).get([effect("order:1").id]);
  expect(record?.key).toBe("order:1");
});

it("leaves nothing open when the opening failed", async () => {
  const file = scratchFile();
  const db = opened(new Database(file));
  await storeOf(db).migrate();
  db.exec("insert into twiceproof_schema (version, at) values (99, 0)");
  const before = descriptors();
  const stores = [storeOf(file), storeOf(file)];
  for (const reason of await Promise.all(stores.map((store) => rejection(store.migrate()))))
    expect(reason).toMatchObject({ code: "STORE_SCHEMA_NEWER" });
  expect(descriptors()).toBe(before);
});

it("waits with closing for an opening under way", async () => {
  const file = scratchFile();
  const before = descriptors();
  const store = sqliteStore(file);
  const claimed = rejection(store.claim([effect("order:1")]));
  await store.close();
  expect(await claimed).toMatchObject({ code: "STORE_CLOSED" });
  expect(descriptors()).toBe(before);
});

it("does not open more when the module is loaded again and again", async () => {
  const { modules, descriptors: counts } = JSON.parse(await child("reload", scratchFile(), "20").line());
  expect(modules).toBe(20);
  expect(counts).toHaveLength(20);
  expect(new Set(counts)).toEqual(new Set([counts[0]]));
});

it("keeps each database in memory to its own store", async () => {
  const [one, two] = [storeOf(":memory:"), storeOf(":memory:")];
  expect((await win(one, effect("order:1"))).token).toBe(1);
  expect((await win(two, effect("order:1"))).token).toBe(1);
  expect((await one.health()).warnings).toEqual([expect.stringContaining("in memory")]);
});

it("sets what durability and waiting need on a handle of its own", async () => {
  const file = scratchFile();
  expect((await storeOf(file).health()).warnings).toEqual([]);
  expect(opened(new Database(file)).pragma("journal_mode", { simple: true })).toBe("wal");
});

it("never closes a handle that it was given, and warns of how it is set", async () => {
  for (const db of [opened(new Database(scratchFile())), opened(new DatabaseSync(scratchFile(), { timeout: 5_000 }))]) {
    db.exec("pragma synchronous = off");
    const store = sqliteStore(db);
    const { warnings } = await store.health();
    expect(warnings).toEqual([expect.stringContaining("journal_mode"), expect.stringContaining("busy_timeout")]);
    db.exec("pragma journal_mode = wal; pragma busy_timeout = 50");
    expect((await store.health()).warnings).toEqual([]);
    db.exec("pragma synchronous = normal");
    expect((await store.health()).warnings).toEqual([expect.stringContaining("synchronous")]);
    await store.close();
    expect(db.prepare("select 1 as one").get()).toEqual({ one: 1 });
  }
});

it("tells when the file was removed under it", async () => {
  const file = scratchFile();
  const store = storeOf(file);
  await store.migrate();
  rmSync(file);
  expect((await store.health()).warnings).toEqual([expect.stringContaining("removed")]);
});
