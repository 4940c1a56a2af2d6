import type { ClaimRecord, ClaimRequest, ClaimResult } from "@twiceproof/core/store";
import { holdsFence, judgeClaim } from "@twiceproof/core/store";
import type { Parameter, Row } from "./client.ts";
import type { Statement } from "./fragments.ts";
import { untilAnswered } from "./retry.ts";
import { toArray, toBytesArray, toRecord, toWords } from "./rows.ts";
import type { Session } from "./session.ts";
import type { Statements } from "./sql.ts";

const firstToken = { answer: "won", token: 1 } as const;

/** In the order of `ids`. */
export async function find({ run, sql }: Session, ids: readonly string[]): Promise<readonly (ClaimRecord | null)[]> {
  const rows = ids.length === 0 ? [] : await run(sql.get, [toBytesArray(ids)]);
  const records = new Map(rows.map(({ record }) => toRecord(record)).map((record) => [record.id, record]));
  return ids.map((id) => records.get(id) ?? null);
}

/** As one statement, as far as that goes: a lock, what names a version, or was in somebody's way, is claimed alone. */
export async function claimMany(session: Session, requests: readonly ClaimRequest[]): Promise<readonly ClaimResult[]> {
  const answers = new Map<string, ClaimResult>();
  const fresh = requests.filter(({ kind, seen }) => kind === "effect" && seen === null);
  if (fresh.length > 1) await claimFresh(session, fresh, answers);
  const left = requests.filter(({ id }) => !answers.has(id));
  await Promise.all(left.map(async (request) => answers.set(request.id, await claimOne(session, request))));
  return requests.map(({ id }) => answers.get(id) as ClaimResult);
}

async function claimFresh(
  { run, sql }: Session,
  requests: readonly ClaimRequest[],
  answers: Map<string, ClaimResult>,
): Promise<void> {
  const isFenced = requests.some((request) => request.fence !== null);
  const sorted = requests.toSorted((a, b) => (a.id < b.id ? -1 : 1));
  const rows = await run(isFenced ? sql.claimManyFenced : sql.claimMany, columnsOf(sorted, isFenced));
  const wonBy = new Set(rows.flatMap((row) => toWords(row.wonBy)));
  const records = rows.flatMap(({ record }) => (record === null ? [] : [toRecord(record)]));
  const byId = new Map(records.map((record) => [record.id, record]));
  for (const request of requests) {
    const answer = wonBy.has(request.attemptId) ? firstToken : answerFrom(byId.get(request.id) ?? null, request);
    if (answer !== undefined) answers.set(request.id, answer);
  }
}

export function claimOne(session: Session, request: ClaimRequest): Promise<ClaimResult> {
  const { run, sql } = session;
  const statement = statementFor(sql, request);
  const parameters = valuesOf(request);
  return untilAnswered(async () => {
    const token = mayBeReleased(request) ? await claimReleased(session, request) : undefined;
    if (token !== undefined) return { answer: "won", token };
    const [row] = await run(statement, parameters);
    return row && answerOf(session, row, request);
  });
}

/** The general statement tells why not. */
async function claimReleased({ run, sql }: Session, request: ClaimRequest): Promise<number | undefined> {
  const { id, attemptId, name, scope, turn, runId, holder, leaseMs, fingerprint, seen, ticketId } = request;
  const values: Parameter[] = [id, attemptId, name, scope, turn, runId, holder, leaseMs, fingerprint, seen];
  const [row] =
    ticketId === undefined ? await run(sql.claimReleased, values) : await run(sql.claimInTurn, [...values, ticketId]);
  return row && Number(row.token);
}

function mayBeReleased({ kind, seen, fence }: ClaimRequest): boolean {
  return kind === "lock" && seen !== null && fence === null;
}

function statementFor(sql: Statements, { kind, seen, fence }: ClaimRequest): Statement {
  if (kind === "lock") return sql.claimLock;
  return seen === null && fence === null ? sql.claimNew : sql.claim;
}

/** Undefined: ask again. Another transaction committed after the statement's snapshot, or a lease ran out under it. */
async function answerOf(session: Session, row: Row, request: ClaimRequest): Promise<ClaimResult | undefined> {
  if (row.wonBy === request.attemptId) return { answer: "won", token: Number(row.wonToken ?? firstToken.token) };
  const record = row.record === null ? null : toRecord(row.record);
  const answer = answerFrom(record, request);
  if (row.behind === true && (answer === undefined || answer.answer === "free")) return { answer: "behind", record };
  if (answer !== undefined) return answer;
  if (row.fenced !== true || request.fence === null) return undefined;
  // A fence that is lost stays lost, so this later look tells the same; the statement's own snapshot may be from before.
  const [lock = null] = await find(session, [request.fence.id]);
  return holdsFence(lock, request.fence) ? undefined : { answer: "fenced", record: lock };
}

/** What a claim meets, as far as its own row tells. */
function answerFrom(record: ClaimRecord | null, request: ClaimRequest): ClaimResult | undefined {
  const judged = judgeClaim(record, request);
  if (record === null || judged === "grant") return undefined;
  return judged === "won" ? { answer: "won", token: record.token } : { answer: judged, record };
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
  const columns = asked.map((name) =>
    name === "id" || name === "attemptId"
      ? toBytesArray(requests.map((request) => request[name]))
      : toArray(requests.map((request) => request[name])),
  );
  if (!isFenced) return columns;
  return [
    ...columns,
    toBytesArray(requests.map(({ fence }) => fence?.id ?? null)),
    toBytesArray(requests.map(({ fence }) => fence?.attemptId ?? null)),
    toArray(requests.map(({ fence }) => fence?.token ?? null)),
  ];
}
