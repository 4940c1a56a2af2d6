import { asBytes, asHex, asMs, lasting, now, record, type Statement } from "./fragments.ts";

type LineStatement = "look" | "enter" | "renewTicket" | "leave";

/**
 * Statements of a lock's line. A ticket whose lease is over is out of it: who leaves or wins ends the lease, and who enters
 * clears the rows. So the highest place never falls, and of two who enter at once one finds its place taken, and looks
 * again: the order of the places is that of the commits.
 */
export function lineStatements(claims: string, line: string): Readonly<Record<LineStatement, Statement>> {
  const mine = `l.claim_id = ${asBytes("$1::text")} and l.ticket_id = ${asBytes("$2::text")} and l.lease_until > `;

  return {
    /** The record in each row, and one row at least: it and the line are of one moment. */
    look: {
      text: `
  select case when c.id is not null then ${record} end as "record", l.place as "place", ${asHex("l.ticket_id")} as "ticketId",
    l.run_id as "runId", l.holder as "holder", ${asMs("l.queued_at")} as "queuedAt", ${asMs("l.lease_until")} as "leaseUntil",
    ${asMs("one.at")} as "readAt"
  from (select ${now} as at offset 0) as one
  left join ${claims} c on c.id = ${asBytes("$1::text")}
  left join ${line} l on l.claim_id = ${asBytes("$1::text")}
  order by l.place`,
    },

    /**
     * The record as it is when the ticket is in. The lock's row is written as it was: a claim that is under way is waited
     * for, and one whose look at the line is older than this finds another row than it saw (`claimLock`).
     */
    enter: {
      text: `
  with lock as materialized (
    update ${claims} c set version = c.version where c.id = ${asBytes("$1::text")} returning c.*
  ), put as (
    insert into ${line} (claim_id, place, ticket_id, run_id, holder, queued_at, lease_until)
    select ${asBytes("$1::text")}, $3::bigint, ${asBytes("$2::text")}, $4::text, $5::text, ${now}, ${now} + ${lasting("$6::bigint")}
    from (select count(*) from lock) as locked
    on conflict do nothing
    returning claim_id
  ), gone as (
    delete from ${line} l using put where l.claim_id = put.claim_id and l.lease_until <= ${now}
  )
  select (select ${record} from lock c) as "record" from put`,
    },

    renewTicket: {
      text: `
  update ${line} l set lease_until = ${now} + ${lasting("$3::bigint")} where ${mine}${now}
  returning l.place as "place"`,
    },

    leave: { text: `update ${line} l set lease_until = 'epoch' where ${mine}${now}` },
  };
}
