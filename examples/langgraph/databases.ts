import { join } from "node:path";
import { PostgresSaver } from "@langchain/langgraph-checkpoint-postgres";
import { SqliteSaver } from "@langchain/langgraph-checkpoint-sqlite";
import type { Store } from "@twiceproof/core";
import { postgresStore } from "@twiceproof/store-postgres";
import { sqliteStore } from "@twiceproof/store-sqlite";
import { Pool } from "pg";

/** What all workers share: LangGraph's checkpoints, and Twiceproof's claims. */
export interface Databases {
  readonly saver: SqliteSaver | PostgresSaver;
  readonly store: Store;
  /** Once, before the workers start. */
  migrate(): Promise<void>;
  close(): Promise<void>;
}

/** PostgreSQL at `POSTGRES_URL`, or SQLite files in `DATABASES`. */
export function openDatabases(): Databases {
  const url = process.env.POSTGRES_URL;
  if (!url) {
    // Two files: the saver may bring its own copy of better-sqlite3, and two copies undo each other's locks on one file.
    const saver = SqliteSaver.fromConnString(join(process.env.DATABASES ?? "", "checkpoints.db"));
    const store = sqliteStore(join(process.env.DATABASES ?? "", "claims.db"));
    return { saver, store, migrate: async () => undefined, close: async () => void saver.db.close() };
  }
  const pool = new Pool({ connectionString: url, max: 4 });
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
