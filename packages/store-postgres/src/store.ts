import type { ListQuery, Page, PruneQuery, Store } from "@twiceproof/core/store";
import { pageOf, placeOf } from "@twiceproof/core/store";
import { claimMany, claimOne, find } from "./claims.ts";
import type { PostgresClient } from "./client.ts";
import { toHealth } from "./health.ts";
import { renewMany, resolve, settleMany, settleOne } from "./hold.ts";
import { leave, queue, readLine } from "./line.ts";
import { listening, type PostgresListener } from "./listen.ts";
import { toEntry, toRecord } from "./rows.ts";
import { type Session, session } from "./session.ts";
import * as statements from "./sql.ts";

export interface PostgresStoreOptions {
  /** A schema of the store's own. `twiceproof`. */
  readonly schema?: string;
  /**
   * Prepared statements by name. True for pg's own clients, false for all others; a pooler that knows nothing of them is
   * noticed, and gone on with without them.
   */
  readonly prepare?: boolean;
  /**
   * A connected `Client` of pg, straight to the server, of the store's own: those who wait for a lock are woken by its
   * release on other machines, and not only find it at their next look. Lost, it is merely missed.
   */
  readonly listen?: PostgresListener;
}

/**
 * Claims in PostgreSQL, shared by all workers that reach it. The client stays the application's: it is not opened, set up
 * or closed here. Each statement is a transaction of its own. The tables come from `await store.migrate()`.
 */
export function postgresStore(client: PostgresClient, options: PostgresStoreOptions = {}): Store {
  const { schema = "twiceproof", prepare, listen } = options;
  const db = session(client, { schema, prepare });
  const ears = listen && listening(listen, schema);
  const { run, sql } = db;

  return {
    async claim(requests) {
      const [first, ...more] = requests;
      if (first === undefined) return [];
      return more.length === 0 ? [await claimOne(db, first)] : claimMany(db, requests);
    },

    renew: (renewals) => renewMany(db, renewals),

    async settle(settlements) {
      const [first, ...more] = settlements;
      if (first === undefined) return [];
      return more.length === 0 ? [await settleOne(db, first)] : settleMany(db, settlements);
    },

    async abandon({ id, attemptId, token }, reason) {
      await run(sql.abandon, [id, attemptId, token, reason]);
    },

    resolve: (doubt, verdict, by) => resolve(db, doubt, verdict, by),

    queue: (request) => queue(db, request),

    leave: (id, ticketId) => leave(db, id, ticketId),

    line: (id) => readLine(db, id),

    ...(ears && { watch: ears.watch }),

    fenceStatement: ({ id, attemptId, token }) => ({ text: sql.fence.text, values: [id, attemptId, token] }),

    get: (ids) => find(db, ids),

    list: (query) => list(db, query),

    history: async (id) => (await run(sql.history, [id])).map(toEntry),

    prune: (query) => prune(db, query),

    migrate: () => db.migrate(),

    health: async () => toHealth((await run(statements.health))[0] ?? {}),

    async close() {
      ears?.close();
      db.close();
    },
  };
}

async function list({ run, sql }: Session, query: ListQuery): Promise<Page> {
  const { namespace, limit, kind = null, state = null, scope = null, name = null, after } = query;
  const place = placeOf(after);
  const rows = await run(sql.list, [namespace, place.createdAt, place.id, kind, scope, name, state, limit + 1]);
  return pageOf(
    rows.map((row) => toRecord(row.record)),
    limit,
  );
}

const pruneAtOnce = 1_000;

/** In transactions of a thousand, each of which leaves the others room; what is locked at that moment is left for the next time. */
async function prune({ run, sql }: Session, { namespace, olderThanMs, limit, keepKeys }: PruneQuery): Promise<number> {
  for (let removed = 0; ; ) {
    const atOnce = Math.min(pruneAtOnce, limit - removed);
    const [row] = await run(keepKeys ? sql.dropResults : sql.prune, [namespace, olderThanMs, atOnce]);
    const count = Number(row?.removed);
    removed += count;
    if (count < atOnce || removed >= limit) return removed;
  }
}
