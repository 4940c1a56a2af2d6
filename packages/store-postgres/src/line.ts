import type { ClaimRecord, Queued, Ticket, TicketRequest } from "@twiceproof/core/store";
import { judgeTicket, ticketsAhead } from "@twiceproof/core/store";
import { untilAnswered } from "./retry.ts";
import { toRecord, toTicket } from "./rows.ts";
import type { Session } from "./session.ts";

/** Most who wait ask for a place that they have: that is one look, and writes nothing. */
export function queue(session: Session, request: TicketRequest): Promise<Queued> {
  const { run, sql } = session;
  const { id, ticketId, runId, holder, leaseMs } = request;
  return untilAnswered(async (): Promise<Queued | undefined> => {
    const { record, line, next } = await look(session, id);
    const queued = { answer: "queued", ahead: ticketsAhead(line, ticketId), record } as const;
    switch (judgeTicket(line, request)) {
      case "full":
        return { answer: "full", depth: line.length };
      case "keep":
        return queued;
      case "renew":
        return (await run(sql.renewTicket, [id, ticketId, leaseMs])).length > 0 ? queued : undefined;
      case "enter": {
        const [row] = await run(sql.enter, [id, ticketId, next, runId, holder, leaseMs]);
        return row && { ...queued, record: row.record === null ? null : toRecord(row.record) };
      }
    }
  });
}

export async function leave({ run, sql }: Session, id: string, ticketId: string): Promise<void> {
  await run(sql.leave, [id, ticketId]);
}

export async function readLine(session: Session, id: string): Promise<readonly Ticket[]> {
  return (await look(session, id)).line;
}

interface Look {
  readonly record: ClaimRecord | null;
  /** Of those who are alive. */
  readonly line: readonly Ticket[];
  /** The place after the last, alive or not. */
  readonly next: number;
}

async function look({ run, sql }: Session, id: string): Promise<Look> {
  const rows = await run(sql.look, [id]);
  const [first, last] = [rows[0], rows.at(-1)];
  const tickets = rows.filter(({ ticketId }) => ticketId !== null).map(toTicket);
  return {
    record: first === undefined || first.record === null ? null : toRecord(first.record),
    line: tickets.filter(({ leaseUntil, readAt }) => leaseUntil > readAt),
    next: Number(last?.place ?? 0) + 1,
  };
}
