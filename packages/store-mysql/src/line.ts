import type { ClaimRecord, ClaimRequest, ClaimResult, Queued, Ticket, TicketRequest } from "@twiceproof/core/store";
import { holdsFence, judgeClaim, judgeTicket, ticketsAhead } from "@twiceproof/core/store";
import { find } from "./claims.ts";
import type { Connection, Database, Row } from "./client.ts";
import { isBlocked, isDuplicateKey, overtaken, unavailable } from "./errors.ts";
import type { Tables } from "./prefix.ts";
import { toRecord, toTicket } from "./rows.ts";
import { insert, lock } from "./sql.ts";
import * as sql from "./sql-line.ts";
import type { Statement } from "./statement.ts";

const maxRounds = 10;

type Placed = Ticket & { readonly place: number };

/**
 * Most who wait ask for a place that they have: that is one look, and writes nothing.
 *
 * @throws an error that counts as passing, when somebody else was faster.
 */
export async function queue(db: Database, tables: Tables, request: TicketRequest): Promise<Queued> {
  const { id, ticketId } = request;
  const { record, line, over } = await look(db, tables, id);
  const queued = { answer: "queued", ahead: ticketsAhead(line, ticketId), record } as const;
  switch (judgeTicket(line, request)) {
    case "full":
      return { answer: "full", depth: line.length };
    case "keep":
      return queued;
    case "renew": {
      const place = line[queued.ahead]?.place ?? 0;
      if ((await db.write(sql.renewTicket(tables, request, place))) === 1) return queued;
      throw overtaken();
    }
    case "enter": {
      const entered = await enter(db, tables, request);
      if (over.length > 0) await db.write(sql.clear(tables, id, over));
      return entered;
    }
  }
}

/** First the lock's row, for which entries wait for each other, and for a claim that is under way; then the line. */
function enter(db: Database, tables: Tables, request: TicketRequest): Promise<Queued> {
  return db.transaction(async (connection) => {
    const [row] = await connection.rows(lock(tables, request.id));
    const { line, next } = split(await connection.rows(sql.readLine(tables, request.id)));
    if (judgeTicket(line, request) !== "enter" || !(await wrote(connection, sql.enter(tables, request, next))))
      throw overtaken();
    return { answer: "queued", ahead: line.length, record: row === undefined ? null : toRecord(row) };
  });
}

export async function leave(db: Connection, tables: Tables, id: string, ticketId: string): Promise<void> {
  const mine = (await look(db, tables, id)).line.find((ticket) => ticket.ticketId === ticketId);
  if (mine !== undefined) await db.write(sql.leave(tables, id, mine.place));
}

export async function readLine(db: Connection, tables: Tables, id: string): Promise<readonly Ticket[]> {
  return (await look(db, tables, id)).line.map(({ place, ...ticket }) => ticket);
}

/**
 * One statement, if nobody changed the lock since this claimant read it. Otherwise a look, and one statement if the lock is
 * free and nobody waits before this claimant.
 */
export async function claimLock(db: Database, tables: Tables, request: ClaimRequest): Promise<ClaimResult> {
  const { id, fence, ticketId } = request;
  const seen = await claimSeen(db, tables, request);
  if (seen !== null) return { answer: "won", token: seen };
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
    const place = line.find((ticket) => ticket.ticketId === ticketId)?.place;
    const granted =
      record === null
        ? await grantedFirst(db, tables, request)
        : (await db.write(sql.claimInTurn(tables, request, record, place))) > 0;
    if (granted) return { answer: "won", token: (record?.token ?? 0) + 1 };
  }
  throw unavailable("The key changed hands again and again while it was claimed.");
}

/** The token, or null when a look has to tell why not: also of a request that arrives again, whose claim it then finds. */
async function claimSeen(db: Connection, tables: Tables, request: ClaimRequest): Promise<number | null> {
  const { seen, fence, ticketId } = request;
  // A place is told by a look alone, and no lock is claimed under another.
  if (seen === null || fence !== null || ticketId !== undefined) return null;
  try {
    return await db.numbered(sql.claimSeen(tables, request, seen));
  } catch (error) {
    if (isBlocked(error)) return null;
    throw error;
  }
}

/**
 * A lock that nobody ever held has no row, and at READ COMMITTED nothing is in its place: there, of a claim and an entry at
 * once, both may find the lock free, and the next look of who waits tells.
 */
function grantedFirst(db: Database, tables: Tables, request: ClaimRequest): Promise<boolean> {
  const { id, ticketId } = request;
  return db.transaction(async (connection) => {
    if (!(await wrote(connection, insert(tables, request)))) return false;
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
