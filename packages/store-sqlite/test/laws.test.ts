import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { Store } from "@twiceproof/core/store";
import { type StoreHarness, storeLaws } from "@twiceproof/core/testing";
import Database from "better-sqlite3";
import { afterAll, beforeAll, describe, it } from "vitest";
import { type SqliteHandle, sqliteStore } from "../src/index.ts";

const expire =
  "update twiceproof_claims set lease_until = 0 where state = 'claimed'; update twiceproof_line set lease_until = 0";

interface Closable extends SqliteHandle {
  close(): unknown;
}

/** `connect` gives every store a source of its own; `expireLeases` comes from outside of all of them. */
function fileHarness(open: (file: string) => Closable, connect: (file: string) => string | Closable): StoreHarness {
  const folder = mkdtempSync(join(tmpdir(), "twiceproof-laws-"));
  const file = join(folder, "app.db");
  const stores: Store[] = [];
  const handles: Closable[] = [];
  return {
    async connect() {
      const source = connect(file);
      if (typeof source !== "string") handles.push(source);
      const store = sqliteStore(source);
      stores.push(store);
      await store.migrate();
      return store;
    },
    async expireLeases() {
      const outside = open(file);
      outside.exec(expire);
      outside.close();
    },
    async close() {
      for (const store of stores) await store.close();
      for (const handle of handles) handle.close();
      rmSync(folder, { recursive: true });
    },
  };
}

/** Memory cannot be reached from outside: one handle, given to every store. */
function memoryHarness(): StoreHarness {
  const handle = new Database(":memory:");
  return {
    connect: async () => sqliteStore(handle),
    expireLeases: async () => void handle.exec(expire),
    close: async () => void handle.close(),
  };
}

const betterSqlite3 = (file: string): Closable => new Database(file);
const nodeSqlite = (file: string): Closable => new DatabaseSync(file, { timeout: 50 });
const nodeSqliteBigInts = (file: string): Closable => new DatabaseSync(file, { timeout: 50, readBigInts: true });

const harnesses: readonly (readonly [name: string, make: () => StoreHarness])[] = [
  ["a path", () => fileHarness(betterSqlite3, (file) => file)],
  ["open handles of better-sqlite3", () => fileHarness(betterSqlite3, betterSqlite3)],
  ["open handles of node:sqlite", () => fileHarness(nodeSqlite, nodeSqlite)],
  ["open handles of node:sqlite that read bigints", () => fileHarness(nodeSqlite, nodeSqliteBigInts)],
  ["a handle of a database in memory", memoryHarness],
];

describe.each(harnesses)("the laws of a store, on %s", (_, make) => {
  let harness: StoreHarness;
  beforeAll(() => {
    harness = make();
  });
  afterAll(() => harness.close());

  for (const law of storeLaws) it(`${law.number}: ${law.name}`, () => law.check(harness));
});
