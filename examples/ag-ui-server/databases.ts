import { PostgresSaver } from "@langchain/langgraph-checkpoint-postgres";
import { SqliteSaver } from "@langchain/langgraph-checkpoint-sqlite";
import type { Store } from "@twiceproof/core";
import { postgresStore } from "@twiceproof/store-postgres";
import { sqliteStore } from "@twiceproof/store-sqlite";
import Database from "better-sqlite3";
import { Pool } from "pg";

/** LangGraph's checkpoints and Twiceproof's claims, in one database: so that a checkpoint and its fence are one transaction. */
export interface Databases {
  readonly saver: SqliteSaver | PostgresSaver;
  readonly store: Store;
  /** Once, before the servers start. */
  migrate(): Promise<void>;
  close(): Promise<void>;
}

/** `DATABASE`: the address of a PostgreSQL, or the path of an SQLite file. */
export function openDatabases(): Databases {
  const address = process.env.DATABASE ?? "";
  if (!/^postgres(ql)?:/.test(address)) {
    const db = new Database(address);
    const saver = new SqliteSaver(db);
    const store = sqliteStore(address);
    return {
      saver,
      store,
      // Two servers that create the tables at once would get in each other's way.
      async migrate() {
        await saver.getTuple({ configurable: { thread_id: "none" } });
        await store.migrate();
      },
      close: async () => void db.close(),
    };
  }
  const pool = new Pool({ connectionString: address, max: 8 });
  pool.on("error", (error) => console.error(`PostgreSQL: ${error.message}`));
  const saver = new PostgresSaver(pool);
  const store = postgresStore(pool);
  return {
    saver,
    store,
    async migrate() {
      await saver.setup();
      await store.migrate();
    },
    close: () => pool.end(),
  };
}
