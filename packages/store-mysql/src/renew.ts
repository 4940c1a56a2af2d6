import type { ClaimRecord, Renewal, Renewed } from "@twiceproof/core/store";
import { judgeRenewal } from "@twiceproof/core/store";
import { find } from "./claims.ts";
import type { Connection, Database } from "./client.ts";
import { isBlocked, isPassing } from "./errors.ts";
import type { Tables } from "./prefix.ts";
import { toRecord } from "./rows.ts";
import * as sql from "./sql.ts";

/** How many of the rows that were blocked are waited for: each takes a connection for a second at most. */
const maxWaiting = 2;

/**
 * What can be locked at once is renewed at once, and committed. A row that a claim under this lock holds for a moment is
 * then waited for in the server's queue, which is fair: without that, a busy run could starve its own heartbeat.
 */
export async function renew(db: Database, tables: Tables, renewals: readonly Renewal[]): Promise<readonly Renewed[]> {
  if (renewals.length === 0) return [];
  const answers = await db.transaction(async (connection) => {
    const rows = await connection.rows(sql.lockForRenewal(tables, renewals.map(({ id }) => id).sort()));
    return extend(connection, tables, renewals, rows.map(toRecord));
  });
  const unlocked = renewals.filter(({ id }) => !answers.has(id));
  const records = await find(
    db,
    tables,
    unlocked.map(({ id }) => id),
  );
  const blocked = unlocked.filter((renewal, index) => {
    const isLost = judgeRenewal(records[index] ?? null, renewal) === "lost";
    if (isLost) answers.set(renewal.id, "lost");
    return !isLost;
  });
  await Promise.all(
    blocked.slice(0, maxWaiting).map(async (renewal) => {
      answers.set(renewal.id, await waitFor(db, tables, renewal));
    }),
  );
  return renewals.map(({ id }) => answers.get(id) ?? "busy");
}

async function waitFor(db: Database, tables: Tables, renewal: Renewal): Promise<Renewed> {
  try {
    return await db.transaction(async (connection) => {
      const rows = await connection.rows(sql.lock(tables, renewal.id));
      const answers = await extend(connection, tables, [renewal], rows.map(toRecord));
      return answers.get(renewal.id) ?? "lost";
    });
  } catch (error) {
    if (isBlocked(error) || isPassing(error)) return "busy";
    throw error;
  }
}

/** Of rows that are locked: `readAt` is the store's clock, and nobody else moves `leaseUntil`. */
async function extend(
  connection: Connection,
  tables: Tables,
  renewals: readonly Renewal[],
  records: readonly ClaimRecord[],
): Promise<Map<string, Renewed>> {
  const byId = new Map(records.map((record) => [record.id, record]));
  const answers = new Map<string, Renewed>();
  const leases: { id: string; leaseMs: number; leaseUntil: number }[] = [];
  for (const renewal of renewals) {
    const record = byId.get(renewal.id);
    if (record === undefined) continue;
    const answer = judgeRenewal(record, renewal);
    answers.set(renewal.id, answer);
    if (answer === "lost") continue;
    const leaseUntil = record.readAt + renewal.leaseMs;
    const { id } = record;
    leases.push(leaseUntil > record.leaseUntil ? { id, leaseMs: renewal.leaseMs, leaseUntil } : record);
  }
  if (leases.length > 0) await connection.write(sql.renew(tables, leases));
  return answers;
}
