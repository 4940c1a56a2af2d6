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
import type { Row } from "./client.ts";

/** Numbers go through `Number`, since a pool may be set to return long ones as text; text comes as its bytes. */
export function toRecord(row: Row): ClaimRecord {
  const kind = text(row.kind) as ClaimKind;
  const abandoned = Number(row.abandoned) === 1;
  const leaseUntil = Number(row.leaseUntil);
  const readAt = Number(row.readAt);
  return {
    id: toHex(row.id),
    attemptId: toHex(row.attemptId),
    token: Number(row.token),
    namespace: text(row.namespace),
    kind,
    key: text(row.claimKey),
    name: text(row.name),
    scope: textOrNull(row.scope),
    turn: textOrNull(row.turn),
    runId: textOrNull(row.runId),
    fingerprint: text(row.fingerprint),
    holder: text(row.holder),
    state: deriveState({ kind, abandoned, leaseUntil, stored: text(row.state) as StoredState }, readAt),
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
    attemptId: row.attemptId === null ? null : toHex(row.attemptId),
    what: text(row.what) as HistoryEvent,
    who: textOrNull(row.who),
    why: textOrNull(row.why),
    evidence: textOrNull(row.evidence),
    decisionId: row.decisionId === null ? null : toHex(row.decisionId),
    payload: toPayload(row),
  };
}

export function toTicket(row: Row): Ticket {
  return {
    ticketId: toHex(row.ticketId),
    runId: textOrNull(row.ticketRunId),
    holder: text(row.ticketHolder),
    queuedAt: Number(row.queuedAt),
    leaseUntil: Number(row.ticketUntil),
    readAt: Number(row.ticketReadAt),
  };
}

export function toHex(value: unknown): string {
  return Buffer.isBuffer(value) ? value.toString("hex") : "";
}

export function text(value: unknown): string {
  return Buffer.isBuffer(value) ? value.toString("utf8") : String(value ?? "");
}

function textOrNull(value: unknown): string | null {
  return value === null ? null : text(value);
}

function toPayload(row: Row): Payload | null {
  return row.format === null ? null : { format: text(row.format), text: text(row.result) };
}
