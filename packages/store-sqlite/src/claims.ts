import type {
  ClaimRecord,
  ClaimRequest,
  ClaimResult,
  HistoryEntry,
  Judged,
  Payload,
  Settled,
  Settlement,
} from "@twiceproof/core/store";
import { holdsFence, judgeClaim, judgeSettlement } from "@twiceproof/core/store";
import type { Database, Parameters } from "./database.ts";
import { isBehind, leave } from "./line.ts";
import { toRecord } from "./rows.ts";
import * as sql from "./sql.ts";
import { unlock } from "./sql-line.ts";

/** In the order of `ids`. */
export function find(db: Database, ids: readonly string[]): readonly (ClaimRecord | null)[] {
  const [id] = ids;
  if (id !== undefined && ids.length === 1) return [findOne(db, id)];
  const rows = db.all(sql.get, { ids: JSON.stringify(ids) });
  const records = new Map(rows.map((row) => [row.id as string, toRecord(row)]));
  return ids.map((id) => records.get(id) ?? null);
}

export function findOne(db: Database, id: string): ClaimRecord | null {
  const [row] = db.all(sql.getOne, { id });
  return row === undefined ? null : toRecord(row);
}

/** What a claim meets, as far as its own row tells; null when it has to be tried. */
export function answerFrom(db: Database, record: ClaimRecord | null, request: ClaimRequest): ClaimResult | null {
  const judged = judgeClaim(record, request);
  if (record === null || judged === "grant" || (judged === "free" && isBehind(db, request))) return null;
  return judged === "won" ? { answer: "won", token: record.token } : { answer: judged, record };
}

/** Inside the write transaction, so that a refusal and its reason are of one moment (promise 12). */
export function tryClaim(db: Database, request: ClaimRequest): ClaimResult {
  const { fence } = request;
  const token = grant(db, request);
  if (token !== undefined) return { answer: "won", token };
  const record = findOne(db, request.id);
  const answer = answerFrom(db, record, request);
  if (answer !== null) return answer;
  if (isBehind(db, request)) return { answer: "behind", record };
  const lock = fence === null ? null : findOne(db, fence.id);
  if (!holdsFence(lock, fence)) return { answer: "fenced", record: lock };
  // What lapsed between the two statements, a lock or the ticket before, was in the way when the claim was tried.
  return record === null ? tryClaim(db, request) : { answer: "free", record };
}

/** The token that was granted. With a ticket it is two statements. */
export function grant(db: Database, request: ClaimRequest): number | undefined {
  const { kind, id, attemptId, seen, fence, ticketId = null } = request;
  if (kind === "effect" && seen === null && fence === null)
    return db.run(sql.claimNew, asked(request)) > 0 ? 1 : undefined;
  const [row] =
    kind === "lock"
      ? db.all(sql.claimLock, { ...parameters(request), ticketId })
      : db.all(sql.claim, parameters(request));
  if (row?.attemptId !== attemptId) return undefined;
  if (kind === "lock" && ticketId !== null) leave(db, id, ticketId);
  return Number(row.token);
}

/** One by one: node:sqlite refuses a parameter that the statement does not name. */
function asked(request: ClaimRequest): Parameters {
  return {
    id: request.id,
    attemptId: request.attemptId,
    namespace: request.namespace,
    kind: request.kind,
    key: request.key,
    name: request.name,
    scope: request.scope,
    turn: request.turn,
    runId: request.runId,
    fingerprint: request.fingerprint,
    holder: request.holder,
    leaseMs: request.leaseMs,
  };
}

function parameters(request: ClaimRequest): Parameters {
  const { fence, seen } = request;
  return {
    ...asked(request),
    seen,
    fenceId: fence?.id ?? null,
    fenceAttemptId: fence?.attemptId ?? null,
    fenceToken: fence?.token ?? null,
  };
}

export function settle(db: Database, settlement: Settlement): Settled {
  const { id, attemptId, token, state, payload } = settlement;
  if (settleOpen(db, settlement)) return "settled";
  const recorded = db.all(sql.findLate, { id, attemptId, state }).length > 0;
  const { answer, change, history } = judgeSettlement(findOne(db, id), settlement, recorded);
  apply(db, id, change);
  if (history !== undefined) note(db, id, { token, attemptId, what: history, payload });
  return answer;
}

/** A claim that is open, and that nothing speaks against. */
export function settleOpen(db: Database, { id, attemptId, token, state, payload }: Settlement): boolean {
  return db.run(sql.settle, { id, attemptId, token, state, ...columnsOf(payload) }) > 0;
}

export function apply(db: Database, id: string, change: Judged<unknown>["change"]): void {
  switch (change?.to) {
    case "settled": {
      const { state, payload, byVerdict } = change;
      db.run(sql.decide, { id, state, byVerdict: Number(byVerdict), ...columnsOf(payload) });
      return;
    }
    case "disputed":
      db.run(sql.dispute, { id });
      return;
    case "cancel-requested":
      db.run(sql.requestCancel, { id });
      return;
    case "unlocked":
      db.run(unlock, { id, attemptId: change.attemptId });
      return;
    case undefined:
  }
}

const unsaid = { who: null, why: null, evidence: null, decisionId: null, payload: null };
type Said = Pick<HistoryEntry, "token" | "attemptId" | "what"> & Partial<HistoryEntry>;

export function note(db: Database, claimId: string, entry: Said): void {
  const { payload, ...columns } = { ...unsaid, ...entry };
  db.run(sql.addHistory, { claimId, ...columns, ...columnsOf(payload) });
}

function columnsOf(payload: Payload | null): { readonly format: string | null; readonly text: string | null } {
  return { format: payload?.format ?? null, text: payload?.text ?? null };
}
