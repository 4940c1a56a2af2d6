import type { PruneQuery } from "@twiceproof/core/store";
import type { Database } from "./client.ts";
import type { Tables } from "./prefix.ts";
import { toHex } from "./rows.ts";
import * as sql from "./sql.ts";

/** So much a transaction: claims go on between two of them. */
const batchSize = 500;

/** Candidates are read without a lock: a locking scan of the index would keep new claims out of its last gap. */
export async function prune(db: Database, tables: Tables, query: PruneQuery): Promise<number> {
  let removed = 0;
  while (removed < query.limit) {
    const limit = Math.min(batchSize, query.limit - removed);
    const candidates = (await db.rows(sql.prunable(tables, { ...query, limit }))).map((row) => toHex(row.id));
    if (candidates.length === 0) break;
    removed += await db.transaction(async (connection) => {
      const rows = await connection.rows(sql.lockForPruning(tables, candidates, query));
      const ids = rows.map((row) => toHex(row.id));
      if (ids.length === 0) return 0;
      await connection.write(query.keepKeys ? sql.dropHistoryResults(tables, ids) : sql.pruneHistory(tables, ids));
      await connection.write(query.keepKeys ? sql.dropResults(tables, ids) : sql.prune(tables, ids));
      return ids.length;
    });
  }
  return removed;
}
