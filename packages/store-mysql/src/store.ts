import type { ClaimRequest, ClaimResult, ListQuery, Page, Store } from "@twiceproof/core/store";
import { decisionEntry, judgeRenewal, judgeVerdict, pageOf, placeOf } from "@twiceproof/core/store";
import { claimsOf, find } from "./claims.ts";
import { type Connection, databaseOf } from "./client.ts";
import type { MysqlClient } from "./driver.ts";
import { health } from "./health.ts";
import { claimLock, leave, queue, readLine } from "./line.ts";
import { migrate } from "./migrate.ts";
import { type MysqlStoreOptions, type Tables, tablesOf } from "./prefix.ts";
import { prune } from "./prune.ts";
import { renew } from "./renew.ts";
import { toEntry, toRecord } from "./rows.ts";
import { session } from "./session.ts";
import { apply, locked, note, settle } from "./settle.ts";
import * as sql from "./sql.ts";
import { withPlaceholders } from "./statement.ts";

/**
 * Claims in MySQL or MariaDB, shared by all who reach that server. `client` is a pool or a connection of mysql2; a
 * connection must be the store's own. Nothing is asked of the server before the first call, and the tables are made by
 * `migrate()` alone.
 *
 * @throws TwiceproofError `INVALID_ARGUMENT`
 */
export function mysqlStore(client: MysqlClient, options: MysqlStoreOptions = {}): Store {
  const tables = tablesOf(options);
  const db = databaseOf(client);
  const claims = claimsOf(db, tables);
  const { ask, askUnprepared, close } = session(db, tables);

  function claimOne(request: ClaimRequest): Promise<ClaimResult> {
    return request.kind === "lock" ? claimLock(db, tables, request) : claims.one(request);
  }

  return {
    async claim(requests) {
      const [only] = requests;
      if (only === undefined) return [];
      if (requests.some(({ kind }) => kind === "lock")) return ask(() => Promise.all(requests.map(claimOne)));
      if (requests.length === 1) return [await ask(() => claims.one(only))];
      return ask(() => claims.many(requests));
    },

    renew: (renewals) => ask(() => renew(db, tables, renewals)),

    settle: (settlements) => ask(() => settle(db, tables, settlements)),

    abandon: (ref, reason) =>
      ask(() =>
        locked(db, tables, ref.id, async (connection, record) => {
          if (record === null || judgeRenewal(record, ref) === "lost") return;
          const { id, token, attemptId } = ref;
          await connection.write(sql.abandon(tables, id));
          await note(connection, tables, id, { token, attemptId, what: "abandoned", who: record.holder, why: reason });
        }),
      ),

    resolve: (doubt, verdict, by) =>
      ask(() =>
        locked(db, tables, doubt.id, async (connection, record) => {
          const { id, token } = doubt;
          const said = (await connection.rows(sql.readHistory(tables, id))).map(toEntry);
          const before = said.find(({ decisionId }) => decisionId === by.decisionId) ?? null;
          const { answer, change, history } = judgeVerdict(record, doubt, verdict, before);
          await apply(connection, tables, id, change);
          if (history !== undefined)
            await note(connection, tables, id, { ...decisionEntry(verdict, by), token, attemptId: null });
          return answer;
        }),
      ),

    queue: (request) => ask(() => queue(db, tables, request)),

    leave: (id, ticketId) => ask(() => leave(db, tables, id, ticketId)),

    line: (id) => ask(() => readLine(db, tables, id)),

    fenceStatement(ref) {
      const { id, attemptId, token } = ref;
      return { text: withPlaceholders(sql.fence(tables, ref)), values: [id, attemptId, token] };
    },

    get: (ids) => ask(() => find(db, tables, ids)),

    list: (query) => ask(() => list(db, tables, query)),

    history: (id) => ask(async () => (await db.rows(sql.readHistory(tables, id))).map(toEntry)),

    prune: (query) => ask(() => prune(db, tables, query)),

    migrate: () => askUnprepared(() => migrate(db, tables)),

    health: () => ask(() => health(db)),

    close,
  };
}

async function list(db: Connection, tables: Tables, query: ListQuery): Promise<Page> {
  const place = placeOf(query.after);
  const rows = await db.rows(sql.list(tables, { ...query, limit: query.limit + 1 }, place.createdAt, place.id));
  return pageOf(rows.map(toRecord), query.limit);
}
