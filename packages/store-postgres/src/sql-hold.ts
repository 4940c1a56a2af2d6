import { asBytes, held, heldByRequest, lasting, lists, named, now, record, type Statement } from "./fragments.ts";

type HoldStatement = "renew" | "settle" | "settleLock" | "lookLate" | "settleMany";

/** What the holder of a claim does with it. */
export function holdStatements(
  claims: string,
  history: string,
  told: string,
): Readonly<Record<HoldStatement, Statement>> {
  return {
    /** Rows that somebody else has locked are skipped: they answer `busy` and delay no other. */
    renew: {
      text: `
  with req as materialized (
    select * from ${lists({ id: "bytea", attempt_id: "bytea", token: "bigint", lease_ms: "bigint" })}
  ), mine as materialized (
    select r.ord, r.lease_ms, c.id from req r cross join lateral (
      select c.id from ${claims} c where ${heldByRequest} and not c.abandoned for no key update skip locked) c
  ), put as (
    update ${claims} c
    set version = c.version + 1,
      lease_until = greatest(c.lease_until, ${now} + ${lasting("m.lease_ms")}),
      lease_ms = case when ${now} + ${lasting("m.lease_ms")} > c.lease_until then m.lease_ms else c.lease_ms end
    from mine m where c.id = any (array(select id from mine)) and c.id = m.id
    returning m.ord, c.cancel_requested
  )
  select ord as "ord", case when cancel_requested then 'cancel-requested' else 'held' end as "answer" from put
  union all
  select r.ord, 'busy' from req r
  where not exists (select from put p where p.ord = r.ord)
    and exists (select from ${claims} c where ${heldByRequest} and not c.abandoned)`,
    },

    /** An effect's claim that meets its own settlement, also late or given up. */
    settle: named(`
  update ${claims} c
  set version = c.version + 1, state = $4::text, settled_at = ${now}, result_format = $5::text, result = $6::text
  where ${held} and c.kind = 'effect' and not c.disputed and not (c.cancel_requested and $4::text = 'released')
  returning c.token as "token"`),

    /** The same of a lock. It waits for the claims under it, which costs a sixth of the other's time. */
    settleLock: named(`
  update ${claims} c
  set version = c.version + 1, state = $4::text, settled_at = ${now}, result_format = $5::text, result = $6::text
  from (select c.id from ${claims} c where ${held} and c.kind = 'lock' for update) m
  where c.id = m.id
  returning ${told}`),

    /** The record, and whether the history has this attempt's late word already: for `judgeSettlement`. */
    lookLate: named(`
  select ${record} as "record", exists (
    select from ${history} h
    where h.claim_id = c.id and h.attempt_id = ${asBytes("$2::text")} and h.what = 'late-' || $3::text) as "recorded"
  from ${claims} c where c.id = ${asBytes("$1::text")}`),

    /** Effects' alone. Waits for no row; what it leaves without an answer is settled alone. */
    settleMany: named(`
  with mine as materialized (
    select r.ord, r.state, r.format, r.result, c.id
    from ${lists({ id: "bytea", attempt_id: "bytea", token: "bigint", state: "text", format: "text", result: "text" })}
    cross join lateral (
      select c.id from ${claims} c
      where ${heldByRequest} and c.kind = 'effect' and not c.disputed
        and not (c.cancel_requested and r.state = 'released')
      for update skip locked) c
  ), put as (
    update ${claims} c
    set version = c.version + 1, state = m.state, settled_at = ${now}, result_format = m.format, result = m.result
    from mine m where c.id = any (array(select id from mine)) and c.id = m.id
    returning m.ord
  )
  select string_agg(ord::text, ' ') as "settled" from put`),
  };
}
