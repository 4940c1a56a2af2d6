import type {
  ClaimKind,
  ClaimRecord,
  HistoryEntry,
  HistoryEvent,
  Payload,
  StoredState,
  Ticket,
} from "@twiceproof/core/store";
import { deriveState } from "@twiceproof/core/store";
import type { Row } from "./database.ts";

/** Numbers go through `Number`: a handle may be set to return each integer as a bigint. */
export function toRecord(row: Row): ClaimRecord {
  const kind = row.kind as ClaimKind;
  const abandoned = Number(row.abandoned) === 1;
  const leaseUntil = Number(row.leaseUntil);
  const readAt = Number(row.readAt);
  return {
    id: row.id as string,
    attemptId: row.attemptId as string,
    token: Number(row.token),
    namespace: row.namespace as string,
    kind,
    key: row.key as string,
    name: row.name as string,
    scope: row.scope as string | null,
    turn: row.turn as string | null,
    runId: row.runId as string | null,
    fingerprint: row.fingerprint as string,
    holder: row.holder as string,
    state: deriveState({ kind, abandoned, leaseUntil, stored: row.state as StoredState }, readAt),
    version: Number(row.version),
    leaseMs: Number(row.leaseMs),
    leaseUntil,
    createdAt: Number(row.createdAt),
    claimedAt: Number(row.claimedAt),
    settledAt: row.settledAt === null ? null : Number(row.settledAt),
    readAt,
    abandoned,
    disputed: Number(row.disputed) === 1,
    byVerdict: Number(row.byVerdict) === 1,
    cancelRequested: Number(row.cancelRequested) === 1,
    payload: toPayload(row),
  };
}

export function toEntry(row: Row): HistoryEntry {
  return {
    at: Number(row.at),
    token: Number(row.token),
    attemptId: orNull(row.attemptId),
    what: row.what as HistoryEvent,
    who: row.who as string | null,
    why: row.why as string | null,
    evidence: row.evidence as string | null,
    decisionId: orNull(row.decisionId),
    payload: toPayload(row),
  };
}

export function toTicket(row: Row): Ticket {
  return {
    ticketId: row.ticketId as string,
    runId: row.ticketRunId as string | null,
    holder: row.ticketHolder as string,
    queuedAt: Number(row.queuedAt),
    leaseUntil: Number(row.ticketUntil),
    readAt: Number(row.ticketReadAt),
  };
}

/** `hex(null)` is the empty string. */
function orNull(hex: unknown): string | null {
  return hex === "" ? null : (hex as string | null);
}

function toPayload(row: Row): Payload | null {
  return row.format === null ? null : { format: row.format as string, text: row.text as string };
}
