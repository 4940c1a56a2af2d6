import type { ClaimRecord, ClaimRequest, ClaimResult } from "@twiceproof/core/store";
import { holdsFence, judgeClaim } from "@twiceproof/core/store";
import type { Parameter, Row } from "./client.ts";
import type { Statement } from "./fragments.ts";
import { untilAnswered } from "./retry.ts";
import { toArray, toRecord } from "./rows.ts";
import type { Session } from "./session.ts";
import type { Statements } from "./sql.ts";

/** In the order of `ids`. */
export async function find({ run, sql }: Session, ids: readonly string[]): Promise<readonly (ClaimRecord | null)[]> {
  const rows = ids.length === 0 ? [] : await run(sql.get, [toArray(ids)]);
  const records = new Map(rows.map(({ record }) => toRecord(record)).map((record) => [record.id, record]));
  return ids.map((id) => records.get(id) ?? null);
}

/** As one statement, as far as that goes: a lock, what names a version, or was in somebody's way, is claimed alone. */
export async function claimMany(session: Session, requests: readonly ClaimRequest[]): Promise<readonly ClaimResult[]> {
  const answers = new Map<ClaimRequest, ClaimResult>();
  const fresh = requests.filter(({ kind, seen }) => kind === "effect" && seen === null);
  if (fresh.length > 1) {
    const isFenced = fresh.some((request) => request.fence !== null);
    const statement = isFenced ? session.sql.claimManyFenced : session.sql.claimMany;
    for (const row of await session.run(statement, columnsOf(fresh, isFenced))) {
      const request = fresh[Number(row.ord) - 1] as ClaimRequest;
      const answer = await answerOf(session, row, request);
      if (answer !== undefined) answers.set(request, answer);
    }
  }
  return Promise.all(requests.map((request) => answers.get(request) ?? claimOne(session, request)));
}

export function claimOne(session: Session, request: ClaimRequest): Promise<ClaimResult> {
  const { run, sql } = session;
  const statement = statementFor(sql, request);
  const parameters = valuesOf(request);
  return untilAnswered(async () => {
    const [row] = await run(statement, parameters);
    return row && answerOf(session, row, request);
  });
}

function statementFor(sql: Statements, { kind, seen, fence }: ClaimRequest): Statement {
  if (kind === "lock") return sql.claimLock;
  return seen === null && fence === null ? sql.claimNew : sql.claim;
}

/** Undefined: ask again. Another transaction committed after the statement's snapshot, or a lease ran out under it. */
async function answerOf(session: Session, row: Row, request: ClaimRequest): Promise<ClaimResult | undefined> {
  if (row.wonBy === request.attemptId) return { answer: "won", token: Number(row.wonToken) };
  const record = row.record === null ? null : toRecord(row.record);
  const judged = judgeClaim(record, request);
  if (record !== null && judged === "won") return { answer: "won", token: record.token };
  if (row.behind === true && judged !== "taken") return { answer: "behind", record };
  if (record !== null && judged !== "grant") return { answer: judged === "free" ? "free" : "taken", record };
  if (row.fenced !== true || request.fence === null) return undefined;
  // A fence that is lost stays lost, so this later look tells the same; the statement's own snapshot may be from before.
  const [lock = null] = await find(session, [request.fence.id]);
  return holdsFence(lock, request.fence) ? undefined : { answer: "fenced", record: lock };
}

/** In the order of the statements' parameters. */
const asked = [
  "id",
  "attemptId",
  "namespace",
  "kind",
  "key",
  "name",
  "scope",
  "turn",
  "runId",
  "fingerprint",
  "holder",
  "leaseMs",
] as const;
const fenced = ["id", "attemptId", "token"] as const;

function valuesOf(request: ClaimRequest): Parameter[] {
  const values = asked.map((name) => request[name]);
  const { kind, seen, fence, ticketId = null } = request;
  if (kind === "effect" && seen === null && fence === null) return values;
  const guarded = [...values, seen, ...fenced.map((name) => fence?.[name] ?? null)];
  return kind === "lock" ? [...guarded, ticketId] : guarded;
}

/** A list of each. */
function columnsOf(requests: readonly ClaimRequest[], isFenced: boolean): Parameter[] {
  const columns = asked.map((name) => toArray(requests.map((request) => request[name])));
  if (!isFenced) return columns;
  return [...columns, ...fenced.map((name) => toArray(requests.map(({ fence }) => fence?.[name] ?? null)))];
}
