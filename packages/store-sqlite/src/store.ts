import type { ListQuery, Page, Store } from "@twiceproof/core/store";
import { decisionEntry, judgeVerdict, pageOf, placeOf } from "@twiceproof/core/store";
import { answerFrom, apply, find, findOne, grant, note, settle, settleOpen, tryClaim } from "./claims.ts";
import type { Database, SqliteHandle } from "./database.ts";
import { health } from "./health.ts";
import { findPlace, leave, readLine, takePlace } from "./line.ts";
import { toEntry, toRecord } from "./rows.ts";
import { session } from "./session.ts";
import * as sql from "./sql.ts";

/**
 * Claims in an SQLite file, shared by all processes of one machine. A path is opened with better-sqlite3 at the first
 * call, created and migrated by itself, and shared by all stores of this process; `:memory:` belongs to one store alone.
 * A handle that is open already is used as it is, but for `synchronous = full`, and never closed.
 */
export function sqliteStore(source: string | URL | SqliteHandle): Store {
  const { read, single, write, close } = session(source);

  return {
    oneWriter: true,

    async claim(requests) {
      const [alone] = requests.length === 1 && requests[0]?.ticketId === undefined ? requests : [];
      const grantAlone = async (): Promise<number | undefined> => alone && (await single((db) => grant(db, alone)));
      // Who names a version has read a free row, and mostly finds it so.
      const early = alone?.seen != null ? await grantAlone() : undefined;
      if (early !== undefined) return [{ answer: "won", token: early }];
      // A replay ends here: it takes no lock and writes nothing.
      const answers = await read((db) => {
        const records = find(
          db,
          requests.map((request) => request.id),
        );
        return requests.map((request, index) => answerFrom(db, records[index] ?? null, request));
      });
      if (answers.every((answer) => answer !== null)) return answers;
      const token = alone?.seen === null ? await grantAlone() : undefined;
      if (token !== undefined) return [{ answer: "won", token }];
      return write((db) => requests.map((request, index) => answers[index] ?? tryClaim(db, request)));
    },

    renew: (renewals) =>
      write((db) =>
        renewals.map(({ id, attemptId, token, leaseMs }) => {
          const [row] = db.all(sql.renew, { id, attemptId, token, leaseMs });
          if (row === undefined) return "lost";
          return Number(row.cancelRequested) === 1 ? "cancel-requested" : "held";
        }),
      ),

    async settle(settlements) {
      const [alone] = settlements.length === 1 ? settlements : [];
      if (alone && (await single((db) => settleOpen(db, alone)))) return ["settled"];
      return write((db) => settlements.map((settlement) => settle(db, settlement)));
    },

    abandon: ({ id, attemptId, token }, reason) =>
      write((db) => {
        const [row] = db.all(sql.abandon, { id, attemptId, token });
        if (row === undefined) return;
        note(db, id, { token, attemptId, what: "abandoned", who: row.holder as string, why: reason });
      }),

    resolve: (doubt, verdict, by) =>
      write((db) => {
        const { id, token } = doubt;
        const said = db.all(sql.history, { id }).map(toEntry);
        const before = said.find(({ decisionId }) => decisionId === by.decisionId) ?? null;
        const { answer, change, history } = judgeVerdict(findOne(db, id), doubt, verdict, before);
        apply(db, id, change);
        if (history !== undefined) note(db, id, { ...decisionEntry(verdict, by), token, attemptId: null });
        return answer;
      }),

    queue: async (request) => (await read((db) => findPlace(db, request))) ?? write((db) => takePlace(db, request)),

    leave: (id, ticketId) => single((db) => leave(db, id, ticketId)),

    line: (id) => read((db) => readLine(db, id)),

    fenceStatement: ({ id, attemptId, token }) => ({ text: sql.fence, values: [id, attemptId, token] }),

    get: (ids) => read((db) => find(db, ids)),

    list: (query) => read((db) => list(db, query)),

    history: (id) => read((db) => db.all(sql.history, { id }).map(toEntry)),

    prune: ({ namespace, olderThanMs, limit, keepKeys = false }) =>
      write((db) => {
        const [rows, history] = keepKeys ? [sql.dropResults, sql.dropHistoryResults] : [sql.prune, sql.pruneHistory];
        const pruned = db.all(rows, { namespace, olderThanMs, limit }).map((row) => row.id);
        if (pruned.length > 0) db.run(history, { ids: JSON.stringify(pruned) });
        return pruned.length;
      }),

    migrate: () => read(() => undefined),

    health: () => read(health),

    close,
  };
}

function list(db: Database, { namespace, limit, kind, state, scope, name, after }: ListQuery): Page {
  const place = placeOf(after);
  const filters = { kind: kind ?? null, state: state ?? null, scope: scope ?? null, name: name ?? null };
  const rows = db.all(sql.list, {
    namespace,
    afterAt: place.createdAt,
    afterId: place.id,
    ...filters,
    limit: limit + 1,
  });
  return pageOf(rows.map(toRecord), limit);
}
