import type { ClaimRecord, ClaimRequest, ClaimResult, Queued, Ticket, TicketRequest } from "@twiceproof/core/store";
import { holdsFence, judgeClaim, judgeTicket, ticketsAhead } from "@twiceproof/core/store";
import { find } from "./claims.ts";
import type { Connection, Database, Row } from "./client.ts";
import { isDuplicateKey, unavailable } from "./errors.ts";
import type { Tables } from "./prefix.ts";
import { pause } from "./retry.ts";
import { toRecord, toTicket } from "./rows.ts";
import { claimAgain, insert, lock } from "./sql.ts";
import * as sql from "./sql-line.ts";
import type { Statement } from "./statement.ts";

const maxRounds = 20;
const longestPauseMs = 50;

type Placed = Ticket & { readonly place: number };

/** Most who wait ask for a place that they have: that is one look, and writes nothing. */
export async function queue(db: Database, tables: Tables, request: TicketRequest): Promise<Queued> {
  const { id, ticketId } = request;
  for (let round = 0; round < maxRounds; round++) {
    if (round > 0) await pause(Math.min(longestPauseMs, 2 ** round));
    const { record, line, over, next } = await look(db, tables, id);
    const queued = { answer: "queued", ahead: ticketsAhead(line, ticketId), record } as const;
    switch (judgeTicket(line, request)) {
      case "full":
        return { answer: "full", depth: line.length };
      case "keep":
        return queued;
      case "renew": {
        const place = line.find((ticket) => ticket.ticketId === ticketId)?.place ?? next;
        if ((await db.write(sql.renewTicket(tables, request, place))) === 1) return queued;
        break;
      }
      case "enter": {
        const entered = await enter(db, tables, request, next);
        if (entered === undefined) break;
        if (over.length > 0) await db.write(sql.clear(tables, id, over));
        return { ...queued, ...entered };
      }
    }
  }
  throw unavailable("Others entered the line again and again.");
}

/** The record as it is when the ticket is in; undefined when somebody else has taken the place. */
function enter(
  db: Database,
  tables: Tables,
  request: TicketRequest,
  place: number,
): Promise<Pick<Look, "record"> | undefined> {
  return db.transaction(async (connection) => {
    if (!(await wrote(connection, sql.enter(tables, request, place)))) return undefined;
    // Waits for a claim that is under way; one that comes later waits for this, and then reads the line.
    const [row] = await connection.rows(lock(tables, request.id));
    return { record: row === undefined ? null : toRecord(row) };
  });
}

export async function leave(db: Connection, tables: Tables, id: string, ticketId: string): Promise<void> {
  const mine = (await look(db, tables, id)).line.find((ticket) => ticket.ticketId === ticketId);
  if (mine !== undefined) await db.write(sql.leave(tables, id, mine.place));
}

export async function readLine(db: Connection, tables: Tables, id: string): Promise<readonly Ticket[]> {
  return (await look(db, tables, id)).line.map(({ place, ...ticket }) => ticket);
}

/** A look, and a short transaction if the lock is free and nobody waits before this claimant. */
export async function claimLock(db: Database, tables: Tables, request: ClaimRequest): Promise<ClaimResult> {
  const { id, fence, ticketId } = request;
  for (let round = 0; round < maxRounds; round++) {
    const { record, line } = await look(db, tables, id);
    const judged = judgeClaim(record, request);
    if (record !== null && judged === "won") return { answer: "won", token: record.token };
    if (judged !== "taken" && ticketsAhead(line, ticketId) > 0) return { answer: "behind", record };
    if (record !== null && judged !== "grant") return { answer: judged === "free" ? "free" : "taken", record };
    if (round > 0 && fence !== null) {
      const [holder = null] = await find(db, tables, [fence.id]);
      if (!holdsFence(holder, fence)) return { answer: "fenced", record: holder };
    }
    if (await granted(db, tables, request, record)) return { answer: "won", token: (record?.token ?? 0) + 1 };
  }
  throw unavailable("The key changed hands again and again while it was claimed.");
}

/**
 * First the lock's row, then the line: who is entering it waits for that row. A lock that nobody ever held has none, and
 * at READ COMMITTED nothing is in its place: there, of a claim and an entry at once, both may find the lock free, and the
 * next look of who waits tells.
 */
function granted(db: Database, tables: Tables, request: ClaimRequest, read: ClaimRecord | null): Promise<boolean> {
  const { id, ticketId } = request;
  return db.transaction(async (connection) => {
    if (!(await wrote(connection, read === null ? insert(tables, request) : claimAgain(tables, request, read))))
      return false;
    const { line } = split(await connection.rows(sql.readLine(tables, id)));
    if (ticketsAhead(line, ticketId) > 0) {
      await connection.write(sql.rollback);
      return false;
    }
    const mine = line.find((ticket) => ticket.ticketId === ticketId);
    if (mine !== undefined) await connection.write(sql.leave(tables, id, mine.place));
    return true;
  });
}

/** False when a row with that key is there, or none that the statement is about. */
async function wrote(connection: Connection, statement: Statement): Promise<boolean> {
  try {
    return (await connection.write(statement)) === 1;
  } catch (error) {
    if (isDuplicateKey(error)) return false;
    throw error;
  }
}

interface Look {
  readonly record: ClaimRecord | null;
  /** Of those who are alive. */
  readonly line: readonly Placed[];
  /** The places of those who are not. */
  readonly over: readonly number[];
  /** The place after the last of either. */
  readonly next: number;
}

async function look(db: Connection, tables: Tables, id: string): Promise<Look> {
  const rows = await db.rows(sql.look(tables, id));
  const [first] = rows;
  return { record: first === undefined || first.id === null ? null : toRecord(first), ...split(rows) };
}

function split(rows: readonly Row[]): Omit<Look, "record"> {
  const placed = rows
    .filter(({ place }) => place !== null)
    .map((row) => ({ ...toTicket(row), place: Number(row.place) }));
  const isOver = ({ leaseUntil, readAt }: Placed): boolean => leaseUntil <= readAt;
  return {
    line: placed.filter((ticket) => !isOver(ticket)),
    over: placed.filter(isOver).map(({ place }) => place),
    next: (placed.at(-1)?.place ?? 0) + 1,
  };
}
