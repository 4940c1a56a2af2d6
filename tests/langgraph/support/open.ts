import { PostgresSaver } from "@langchain/langgraph-checkpoint-postgres";
import { SqliteSaver } from "@langchain/langgraph-checkpoint-sqlite";
import type { Store } from "@twiceproof/core";
import { postgresStore } from "@twiceproof/store-postgres";
import { sqliteStore } from "@twiceproof/store-sqlite";
import { Pool } from "pg";
import type { Where } from "./protocol.ts";

export interface Opened {
  readonly saver: SqliteSaver | PostgresSaver;
  readonly store: Store;
  /** The tables of both. */
  migrate(): Promise<void>;
  close(): Promise<void>;
}

export function open(where: Where): Opened {
  switch (where.on) {
    case "sqlite": {
      const saver = SqliteSaver.fromConnString(where.checkpoints);
      const store = sqliteStore(where.claims);
      return { saver, store, migrate: async () => undefined, close: async () => void saver.db.close() };
    }
    case "one sqlite": {
      const saver = SqliteSaver.fromConnString(where.file);
      const store = sqliteStore(saver.db);
      return { saver, store, migrate: () => store.migrate(), close: async () => void saver.db.close() };
    }
    case "postgres": {
      const pool = new Pool({ connectionString: where.url, max: 3 });
      // The database may be dropped while a connection is idle.
      pool.on("error", () => undefined);
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
  }
}
