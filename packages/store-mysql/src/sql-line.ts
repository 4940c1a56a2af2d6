import type { ClaimRequest, TicketRequest } from "@twiceproof/core/store";
import type { Tables } from "./prefix.ts";
import { again, claimAgain, now, record, waitsNotAtAll } from "./sql.ts";
import { bytes, hex, join, orNull, raw, type Statement, sql, varying } from "./statement.ts";

/**
 * Statements of a lock's line. A ticket whose lease is over is out of it: who leaves or wins ends the lease, and who enters
 * clears the rows. So the highest place never falls, and of two who enter at once one finds its place taken, and looks
 * again: the order of the places is that of the commits.
 */
const tickets: Statement = sql`t.place, t.ticket_id as ticketId, cast(t.run_id as binary) as ticketRunId,
  cast(t.holder as binary) as ticketHolder, t.queued_at as queuedAt, t.lease_until as ticketUntil, ${now} as ticketReadAt`;

/** The record in each row, and one row at least: it and the line are of one moment. */
export const look = ({ claims, line }: Tables, id: string): Statement =>
  sql`select ${record}, ${tickets} from (select 1 as one) o
    left join ${claims} c on c.id = ${hex(id)} left join ${line} t on t.claim_id = ${hex(id)} order by t.place`;

export const readLine = ({ line }: Tables, id: string): Statement =>
  sql`select ${tickets} from ${line} t where t.claim_id = ${hex(id)} order by t.place`;

/** A duplicate key says that somebody else has entered. */
export const enter = (
  { line }: Tables,
  { id, ticketId, runId, holder, leaseMs }: TicketRequest,
  place: number,
): Statement =>
  sql`insert into ${line} (claim_id, place, ticket_id, run_id, holder, queued_at, lease_until)
    values (${hex(id)}, ${place}, ${hex(ticketId)}, ${orNull(runId)}, ${bytes(holder)}, ${now}, ${now} + ${leaseMs})`;

/** Of those whose lease is over, which nothing brings back. */
export const clear = ({ line }: Tables, id: string, places: readonly number[]): Statement => {
  const list = places.map((place) => sql`${place}`);
  return varying(sql`delete from ${line} where claim_id = ${hex(id)} and place in (${join(list, ", ")})`);
};

/** By its whole key, as `leave` too: a search for the ticket would lock the line of those who are about to enter. */
export const renewTicket = ({ line }: Tables, { id, leaseMs }: TicketRequest, place: number): Statement =>
  sql`update ${line} t set t.lease_until = ${now} + ${leaseMs}
    where t.claim_id = ${hex(id)} and t.place = ${place} and t.lease_until > ${now}`;

export const leave = ({ line }: Tables, id: string, place: number): Statement =>
  sql`update ${line} t set t.lease_until = 0 where t.claim_id = ${hex(id)} and t.place = ${place}`;

/**
 * Of a row that is as it was when its claimant read or left it, and free. It waits for nobody: the row may have another
 * holder by now, whose own transactions would queue up behind. MySQL passes over a locked row in a select alone, which it
 * does first. Of `not exists` a server may make a join in an order of its choice; of a `limit` it makes none.
 */
export function claimSeen({ claims, line }: Tables, request: ClaimRequest, version: number): Statement {
  return sql`${waitsNotAtAll} update ${claims} c set ${again(request)}
    where c.id = ${hex(request.id)} and c.id = /*!50701 (select f.id from (select l.id from ${claims} l where l.id = */ ${hex(request.id)}
        /*!50701 limit 1 for update skip locked) f) */
      and c.version = ${version} and c.attempt_id <> ${hex(request.attemptId)}
      and cast(c.fingerprint as binary) = ${bytes(request.fingerprint)}
      and (c.state = 'released'
        or c.kind = 'lock' and c.state = 'claimed' and (c.abandoned = 1 or c.lease_until <= ${now}))
      and (select t.place from ${line} t where t.claim_id = c.id and t.lease_until > ${now} limit 1) is null`;
}

/**
 * Of a free lock's row that was read, while nobody who is alive waits before the claimant, whose place ends with it. The row
 * is found by its whole key, so that the server locks it before it looks at the line: an entry is waited for, or waits.
 */
export function claimInTurn(
  tables: Tables,
  request: ClaimRequest,
  read: { readonly version: number; readonly attemptId: string },
  place: number | undefined,
): Statement {
  const { line } = tables;
  const mine = sql`straight_join ${line} m
      on m.claim_id = c.id and m.place = ${place ?? 0} and m.ticket_id = ${hex(request.ticketId ?? "")} and m.lease_until > ${now}`;
  const before = place === undefined ? raw("") : sql` and t.place < ${place}`;
  return claimAgain(tables, request, read, {
    joined: sql`${place === undefined ? raw("") : mine}
      left join ${line} t on t.claim_id = c.id and t.lease_until > ${now}${before}`,
    set: raw(place === undefined ? "" : ", m.lease_until = 0"),
    where: raw(" and t.place is null"),
  });
}

export const rollback: Statement = varying(raw("rollback"));

/** What `judgeVerdict` decided, on a row that is locked. */
export const unlock = ({ claims }: Tables, id: string, attemptId: string): Statement =>
  sql`update ${claims} c
    set c.version = c.version + 1, c.token = c.token + 1, c.attempt_id = ${hex(attemptId)}, c.state = 'released',
      c.settled_at = ${now}, c.settle_id = null, c.abandoned = 0, c.cancel_requested = 0, c.by_verdict = 1,
      c.result_format = null, c.result = null
    where c.id = ${hex(id)}`;
