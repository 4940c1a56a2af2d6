import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type BaseCheckpointSaver, MemorySaver } from "@langchain/langgraph";
import { PostgresSaver } from "@langchain/langgraph-checkpoint-postgres";
import { SqliteSaver } from "@langchain/langgraph-checkpoint-sqlite";
import { memoryStore, type Store } from "@twiceproof/core";
import { postgresStore } from "@twiceproof/store-postgres";
import { sqliteStore } from "@twiceproof/store-sqlite";
import { createDatabase } from "@twiceproof/test-servers";
import { sharedServer } from "@twiceproof/test-servers/vitest";
import { Pool } from "pg";
import { onTestFinished } from "vitest";

/** Where checkpoints and claims are kept. */
export interface Kept {
  readonly saver: BaseCheckpointSaver;
  readonly store: Store;
}

type Open = () => Kept | Promise<Kept>;

export const together: Readonly<Record<string, Open>> = {
  "SqliteSaver, on one handle": () => {
    const saver = sqliteSaverIn(folder());
    return { saver: saver as unknown as BaseCheckpointSaver, store: closing(sqliteStore(saver.db)) };
  },
  "SqliteSaver, in one file": () => {
    const at = folder();
    return {
      saver: sqliteSaverIn(at) as unknown as BaseCheckpointSaver,
      store: closing(sqliteStore(join(at, "checkpoints.db"))),
    };
  },
  PostgresSaver: async () => {
    const pool = poolOn(await databaseUrl());
    return { saver: await postgresSaverOn(pool), store: await migrated(postgresStore(pool)) };
  },
};

export const apart: Readonly<Record<string, Open>> = {
  MemorySaver: () => ({ saver: new MemorySaver(), store: memoryStore() }),
  "MemorySaver, claims in SQLite": () => ({ saver: new MemorySaver(), store: closing(sqliteStore(":memory:")) }),
  "SqliteSaver, claims in memory": () => ({
    saver: sqliteSaverIn(folder()) as unknown as BaseCheckpointSaver,
    store: memoryStore(),
  }),
  "SqliteSaver, claims in another file": () => {
    const at = folder();
    return {
      saver: sqliteSaverIn(at) as unknown as BaseCheckpointSaver,
      store: closing(sqliteStore(join(at, "claims.db"))),
    };
  },
  "SqliteSaver, claims in PostgreSQL": async () => ({
    saver: sqliteSaverIn(folder()) as unknown as BaseCheckpointSaver,
    store: await migrated(postgresStore(poolOn(await databaseUrl()))),
  }),
  "PostgresSaver, claims in another database": async () => ({
    saver: await postgresSaverOn(poolOn(await databaseUrl())),
    store: await migrated(postgresStore(poolOn(await databaseUrl()))),
  }),
  "PostgresSaver, claims in another database, and their tables in both": async () => {
    const pool = poolOn(await databaseUrl());
    await postgresStore(pool).migrate();
    return {
      saver: await postgresSaverOn(pool),
      store: await migrated(postgresStore(poolOn(await databaseUrl()))),
    };
  },
  "PostgresSaver, claims in SQLite": async () => ({
    saver: await postgresSaverOn(poolOn(await databaseUrl())),
    store: closing(sqliteStore(":memory:")),
  }),
};

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), "twiceproof-"));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

function sqliteSaverIn(at: string): SqliteSaver {
  const saver = SqliteSaver.fromConnString(join(at, "checkpoints.db"));
  onTestFinished(() => void saver.db.close());
  return saver;
}

async function databaseUrl(): Promise<string> {
  const database = await createDatabase(sharedServer("postgres").url);
  onTestFinished(() => database.drop());
  return database.url;
}

function poolOn(connectionString: string): Pool {
  const pool = new Pool({ connectionString });
  // Its last goodbye may cross with the end of its database.
  pool.on("error", () => undefined);
  pool.on("connect", (client) => client.on("error", () => undefined));
  onTestFinished(() => pool.end());
  return pool;
}

async function postgresSaverOn(pool: Pool): Promise<BaseCheckpointSaver> {
  const saver = new PostgresSaver(pool);
  await saver.setup();
  return saver as unknown as BaseCheckpointSaver;
}

async function migrated(store: Store): Promise<Store> {
  await store.migrate();
  return closing(store);
}

function closing(store: Store): Store {
  onTestFinished(() => store.close());
  return store;
}
