import type {
  ClaimKind,
  ClaimRecord,
  Decided,
  HistoryEntry,
  HistoryEvent,
  Payload,
  StoredState,
  Ticket,
} from "@twiceproof/core/store";
import { deriveState } from "@twiceproof/core/store";
import type { Row } from "./client.ts";

/** A row as PostgreSQL writes it in JSON, whatever a driver makes of those types: moments are in ISO 8601. */
interface ClaimRow {
  readonly namespace: string;
  readonly kind: ClaimKind;
  readonly key: string;
  readonly name: string;
  readonly scope: string | null;
  readonly turn: string | null;
  readonly run_id: string | null;
  readonly fingerprint: string;
  readonly holder: string;
  readonly state: StoredState;
  readonly token: number;
  readonly version: number;
  readonly lease_ms: number;
  readonly lease_until: string;
  readonly created_at: string;
  readonly claimed_at: string;
  readonly settled_at: string | null;
  readonly abandoned: boolean;
  readonly disputed: boolean;
  readonly by_verdict: boolean;
  readonly cancel_requested: boolean;
  readonly result_format: string | null;
  readonly result: string | null;
}

interface WrittenRecord {
  readonly row: ClaimRow;
  readonly id: string;
  readonly attemptId: string;
  readonly readAt: number;
}

export function toRecord(text: unknown): ClaimRecord {
  const { row, id, attemptId, readAt } = JSON.parse(text as string) as WrittenRecord;
  const { namespace, kind, key, name, scope, turn, fingerprint, holder, token, version, abandoned, disputed } = row;
  const leaseUntil = Date.parse(row.lease_until);
  return {
    ...{ id, attemptId, token, namespace, kind, key, name, scope, turn, fingerprint, holder, version },
    runId: row.run_id,
    state: deriveState({ kind, abandoned, leaseUntil, stored: row.state }, readAt),
    leaseMs: row.lease_ms,
    leaseUntil,
    createdAt: Date.parse(row.created_at),
    claimedAt: Date.parse(row.claimed_at),
    settledAt: row.settled_at === null ? null : Date.parse(row.settled_at),
    ...{ readAt, abandoned, disputed },
    byVerdict: row.by_verdict,
    cancelRequested: row.cancel_requested,
    payload: toPayload(row.result_format, row.result),
  };
}

/** Numbers go through `Number`: a bigint comes as text, as a bigint or as a number, as the driver likes. */
export function toEntry(row: Row): HistoryEntry {
  return {
    at: Number(row.at),
    token: Number(row.token),
    attemptId: row.attemptId as string | null,
    what: row.what as HistoryEvent,
    who: row.who as string | null,
    why: row.why as string | null,
    evidence: row.evidence as string | null,
    decisionId: row.decisionId as string | null,
    payload: toPayload(row.format as string | null, row.text as string | null),
  };
}

export function toTicket(row: Row): Ticket {
  return {
    ticketId: row.ticketId as string,
    runId: row.runId as string | null,
    holder: row.holder as string,
    queuedAt: Number(row.queuedAt),
    leaseUntil: Number(row.leaseUntil),
    readAt: Number(row.readAt),
  };
}

export function toDecided(text: unknown): Decided | null {
  if (text === null) return null;
  const { token, what, format, text: said } = JSON.parse(text as string);
  return { token, what, payload: toPayload(format, said) };
}

function toPayload(format: string | null, text: string | null): Payload | null {
  return format === null || text === null ? null : { format, text };
}

/** An array as PostgreSQL writes it, for one parameter. */
export function toArray(values: readonly (string | number | null)[]): string {
  return `{${values.map((value) => (typeof value === "string" ? quoted(value) : (value ?? "null"))).join(",")}}`;
}

/** Of ids, which are hex and become bytes. */
export function toBytesArray(ids: readonly (string | null)[]): string {
  return `{${ids.map((id) => (id === null ? "null" : `"\\\\x${id}"`)).join(",")}}`;
}

function quoted(value: string): string {
  if (!value.includes('"') && !value.includes("\\")) return `"${value}"`;
  return `"${value.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;
}

/** What a statement has put into one text with blanks; null is nothing. */
export function toWords(text: unknown): readonly string[] {
  return typeof text === "string" ? text.split(" ") : [];
}
