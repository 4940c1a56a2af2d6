import { now, record } from "./sql.ts";

/** Statements of a lock's line. A ticket whose lease is over is out of it, and stays until the next one enters. */
const line = `select place, lower(hex(ticket_id)) as ticketId, run_id as ticketRunId, holder as ticketHolder,
    queued_at as queuedAt, lease_until as ticketUntil, ${now} as ticketReadAt
  from twiceproof_line where claim_id = unhex(:id) and lease_until > ${now}`;

/** The record in each row, and one row at least: it and the line are of one moment. */
export const look: string = `
  select * from (select 1) left join (select ${record} from twiceproof_claims where id = unhex(:id)) left join (${line})
  order by place`;

export const readLine: string = `${line} order by place`;

export const clearLine: string = `delete from twiceproof_line where claim_id = unhex(:id) and lease_until <= ${now}`;

/** At the end: SQLite draws the next `place`, and has one writer. A ticket that is there keeps its own. */
export const enter: string = `
  insert into twiceproof_line (claim_id, ticket_id, run_id, holder, queued_at, lease_until)
  values (unhex(:id), unhex(:ticketId), :runId, :holder, ${now}, ${now} + :leaseMs)
  on conflict (claim_id, ticket_id) do update set lease_until = excluded.lease_until`;

export const leave: string = `
  delete from twiceproof_line where claim_id = unhex(:id) and ticket_id = unhex(:ticketId)`;

/** What `judgeVerdict` decided, on a row read in the same transaction. */
export const unlock: string = `
  update twiceproof_claims
  set version = version + 1, token = token + 1, attempt_id = unhex(:attemptId), state = 'released', settled_at = ${now},
    abandoned = 0, cancel_requested = 0, by_verdict = 1, result_format = null, result = null
  where id = unhex(:id)`;
