import type { ClaimRecord, ClaimRequest, Queued, Ticket, TicketRequest } from "@twiceproof/core/store";
import { judgeTicket, ticketsAhead } from "@twiceproof/core/store";
import type { Database } from "./database.ts";
import { toRecord, toTicket } from "./rows.ts";
import * as sql from "./sql-line.ts";

/** Undefined: its place has to be written. Most who wait ask for a place that they have, and take no lock. */
export function findPlace(db: Database, request: TicketRequest): Queued | undefined {
  const { record, line } = look(db, request.id);
  switch (judgeTicket(line, request)) {
    case "full":
      return { answer: "full", depth: line.length };
    case "keep":
      return { answer: "queued", ahead: ticketsAhead(line, request.ticketId), record };
    case "enter":
    case "renew":
      return undefined;
  }
}

/** Inside the write transaction. */
export function takePlace(db: Database, request: TicketRequest): Queued {
  const found = findPlace(db, request);
  if (found !== undefined) return found;
  const { id, ticketId, runId, holder, leaseMs } = request;
  db.run(sql.clearLine, { id });
  db.run(sql.enter, { id, ticketId, runId, holder, leaseMs });
  const { record, line } = look(db, id);
  return { answer: "queued", ahead: ticketsAhead(line, ticketId), record };
}

export function leave(db: Database, id: string, ticketId: string): void {
  db.run(sql.leave, { id, ticketId });
}

export function readLine(db: Database, id: string): readonly Ticket[] {
  return db.all(sql.readLine, { id }).map(toTicket);
}

/** Whether somebody who is alive waits before this claimant; for an effect nobody does. */
export function isBehind(db: Database, { kind, id, ticketId }: ClaimRequest): boolean {
  return kind === "lock" && ticketsAhead(readLine(db, id), ticketId) > 0;
}

function look(db: Database, id: string): { readonly record: ClaimRecord | null; readonly line: readonly Ticket[] } {
  const rows = db.all(sql.look, { id });
  const [first] = rows;
  return {
    record: first === undefined || first.id === null ? null : toRecord(first),
    line: rows.filter(({ ticketId }) => ticketId !== null).map(toTicket),
  };
}
