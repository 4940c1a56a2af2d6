import type { ClaimRecord, HistoryEntry, Judged, Settled, Settlement } from "@twiceproof/core/store";
import { judgeSettlement, randomId } from "@twiceproof/core/store";
import { find } from "./claims.ts";
import type { Connection, Database } from "./client.ts";
import { isBlocked } from "./errors.ts";
import type { Tables } from "./prefix.ts";
import { toHex, toRecord } from "./rows.ts";
import * as sql from "./sql.ts";
import { unlock } from "./sql-line.ts";
import { settleAll, settledBy } from "./sql-list.ts";

export async function settle(
  db: Database,
  tables: Tables,
  settlements: readonly Settlement[],
): Promise<readonly Settled[]> {
  const [only] = settlements;
  if (only === undefined) return [];
  if (settlements.length === 1) {
    if ((await db.write(sql.settle(tables, only))) === 1) return ["settled"];
    return [await classified(db, tables, only, (await find(db, tables, [only.id]))[0] ?? null)];
  }
  const settleId = randomId();
  if (await settledAll(db, tables, settlements, settleId)) return settlements.map(() => "settled");
  const ids = settlements.map(({ id }) => id);
  const stamped = await db.rows(settledBy(tables, ids, settleId));
  const records = await find(db, tables, ids);
  const mine = new Set(stamped.map((row) => toHex(row.id)));
  return Promise.all(
    settlements.map((settlement, index) =>
      mine.has(settlement.id) ? "settled" : classified(db, tables, settlement, records[index] ?? null),
    ),
  );
}

async function settledAll(
  db: Database,
  tables: Tables,
  settlements: readonly Settlement[],
  settleId: string,
): Promise<boolean> {
  try {
    return (await db.write(settleAll(tables, settlements, settleId))) === settlements.length;
  } catch (error) {
    if (isBlocked(error)) return false;
    throw error;
  }
}

/** What changes nothing needs no lock. */
async function classified(
  db: Database,
  tables: Tables,
  settlement: Settlement,
  record: ClaimRecord | null,
): Promise<Settled> {
  const { answer, change, history } = judgeSettlement(record, settlement, false);
  return change === undefined && history === undefined ? answer : judged(db, tables, settlement);
}

/** Row and history in one short transaction, as `machine.ts` decides on the locked row. */
function judged(db: Database, tables: Tables, settlement: Settlement): Promise<Settled> {
  const { id, attemptId, token, state, payload } = settlement;
  return locked(db, tables, id, async (connection, record) => {
    const recorded = (await connection.rows(sql.findLate(tables, id, attemptId, state))).length > 0;
    const { answer, change, history } = judgeSettlement(record, settlement, recorded);
    await apply(connection, tables, id, change);
    if (history !== undefined) await note(connection, tables, id, { token, attemptId, what: history, payload });
    return answer;
  });
}

export function locked<T>(
  db: Database,
  tables: Tables,
  id: string,
  work: (connection: Connection, record: ClaimRecord | null) => Promise<T>,
): Promise<T> {
  return db.transaction(async (connection) => {
    const [row] = await connection.rows(sql.lock(tables, id));
    return work(connection, row === undefined ? null : toRecord(row));
  });
}

export async function apply(
  connection: Connection,
  tables: Tables,
  id: string,
  change: Judged<unknown>["change"],
): Promise<void> {
  switch (change?.to) {
    case "settled":
      await connection.write(sql.decide(tables, id, change.state, change.payload, change.byVerdict));
      return;
    case "disputed":
      await connection.write(sql.dispute(tables, id));
      return;
    case "cancel-requested":
      await connection.write(sql.requestCancel(tables, id));
      return;
    case "unlocked":
      await connection.write(unlock(tables, id, change.attemptId));
      return;
    case undefined:
  }
}

const unsaid = { who: null, why: null, evidence: null, decisionId: null, payload: null };
type Said = Pick<HistoryEntry, "token" | "attemptId" | "what"> & Partial<HistoryEntry>;

export async function note(connection: Connection, tables: Tables, id: string, entry: Said): Promise<void> {
  await connection.write(sql.addHistory(tables, id, { ...unsaid, ...entry }));
}
