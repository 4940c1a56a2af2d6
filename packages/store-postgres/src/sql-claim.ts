import { asBytes, asHex, isFree, lasting, lists, named, now, record, recordIn, type Statement } from "./fragments.ts";

/** What a claim writes: what it was asked, then what follows. */
const asking = {
  id: "bytea",
  attempt_id: "bytea",
  namespace: "text",
  kind: "text",
  key: "text",
  name: "text",
  scope: "text",
  turn: "text",
  run_id: "text",
  fingerprint: "text",
  holder: "text",
  lease_ms: "bigint",
} as const;
const requested = Object.keys(asking)
  .map((name) => `r.${name}`)
  .join(", ");
const claimed = `${Object.keys(asking).join(", ")}, state, token, version, lease_until, created_at, claimed_at`;

const asked = `${asBytes("$1::text")}, ${asBytes("$2::text")}, $3::text, $4::text, $5::text, $6::text, $7::text, $8::text,
      $9::text, $10::text, $11::text, $12::bigint`;

const granted = (leaseMs: string): string => `'claimed', 1, 1, ${now} + ${lasting(leaseMs)}, ${now}, ${now}`;

/** What a claim writes into a free row. */
const again = (given: Readonly<Record<string, string>>): string => `${Object.entries(given)
  .map(([column, value]) => `${column} = ${value}`)
  .join(", ")},
      state = 'claimed', token = c.token + 1, version = c.version + 1, abandoned = false, disputed = false,
      by_verdict = false, cancel_requested = false, settled_at = null, result_format = null, result = null`;

/** Of it, what comes from the claimant: as parameters of `claimReleased`. */
const released = {
  attempt_id: asBytes("$2::text"),
  name: "$3::text",
  scope: "$4::text",
  turn: "$5::text",
  run_id: "$6::text",
  holder: "$7::text",
  lease_ms: "$8::bigint",
  lease_until: `${now} + ${lasting("$8::bigint")}`,
  claimed_at: now,
};
const excluded = Object.fromEntries(Object.keys(released).map((column) => [column, `excluded.${column}`]));

/** The free row whose version the claimant names. */
const overwrite = `on conflict (id) do update set
      id = excluded.id, ${again(excluded)}
    where c.version = $13::bigint and c.fingerprint = excluded.fingerprint and c.attempt_id <> excluded.attempt_id
      and ${isFree}`;

/** As one text, because to send a row costs the server and the client as much as to write one. */
const wonBy = `select string_agg(${asHex("put.attempt_id")}, ' ') as "wonBy", null as "record" from put`;

type ClaimStatement =
  | "claimNew"
  | "claim"
  | "claimReleased"
  | "claimInTurn"
  | "claimLock"
  | "claimMany"
  | "claimManyFenced";

export function claimStatements(schema: string): Readonly<Record<ClaimStatement, Statement>> {
  const claims = `${schema}.claims`;
  const line = `${schema}.line`;
  const found = recordIn(schema);

  /** Those who wait and are alive; and of them, those before a ticket, or all when it has no place. */
  const waiting = `select from ${line} l where l.claim_id = ${asBytes("$1::text")} and l.lease_until > ${now}`;
  const ahead = (ticket: string): string => `${waiting} and l.place < coalesce((
      select m.place from ${line} m
      where m.claim_id = ${asBytes("$1::text")} and m.ticket_id = ${asBytes(ticket)} and m.lease_until > ${now}),
      9223372036854775807)`;

  const takeReleased = (before: string): string => `
  update ${claims} c
  set ${again(released)}
  where c.id = ${asBytes("$1::text")} and c.version = $10::bigint and c.fingerprint = $9::text and c.kind = 'lock'
    and c.state = 'released' and c.attempt_id <> ${asBytes("$2::text")}
    and c.xmin = (select s.xmin from ${claims} s where s.id = ${asBytes("$1::text")})
    and not exists (${before})`;

  return {
    /** A key without a row, outside of runs: what most claims are. A row that is there is the answer, and nothing is written. */
    claimNew: named(`
  with put as (
    insert into ${claims} (${claimed})
    select ${asked}, ${granted("$12::bigint")}
    on conflict (id) do nothing
    returning attempt_id
  )
  select ${asHex("put.attempt_id")} as "wonBy", case when put.attempt_id is null then ${found} end as "record"
  from (select) as one left join put on true`),

    /**
     * A key without a row, or the free row whose version the claimant names, under a lock that its run still holds. What
     * `seen` finds not free is the answer, and nothing is written for it: an upsert whose `where` is false would write.
     */
    claim: named(`
  with seen as materialized (
    select (c.version = $13::bigint and c.fingerprint = $10::text and c.attempt_id <> ${asBytes("$2::text")}
      and ${isFree}) is true as open
    from ${claims} c where c.id = ${asBytes("$1::text")}
  ), fence as materialized (
    select from ${claims} l
    where l.id = ${asBytes("$14::text")} and l.kind = 'lock' and l.attempt_id = ${asBytes("$15::text")}
      and l.token = $16::bigint and l.state = 'claimed' and not l.abandoned
      and not exists (select from seen where not open)
    for key share
  ), put as (
    insert into ${claims} as c (${claimed})
    select ${asked}, ${granted("$12::bigint")}
    where not exists (select from seen where not open) and ($14::text is null or exists (select from fence))
    ${overwrite}
    returning c.attempt_id, c.token
  )
  select ${asHex("put.attempt_id")} as "wonBy", put.token as "wonToken",
    $14::text is not null and not exists (select from fence) as "fenced",
    case when exists (select from seen where not open) then ${found} end as "record"
  from (select) as one left join put on true`),

    /**
     * A lock that was given back, by whoever names its version: what most claims of locks are, at half the cost of
     * `claimLock`. No fence is waited for: nothing is under way under a lock that was given back. The row must be the one that
     * this statement's snapshot shows, because who enters the line writes it.
     */
    claimReleased: named(`${takeReleased(waiting)} returning c.token as "token"`),

    /** The same by whoever is the first in line. */
    claimInTurn: named(`
  with put as (${takeReleased(ahead("$11::text"))} returning c.token
  ), gone as (
    update ${line} l set lease_until = 'epoch' from put
    where l.claim_id = ${asBytes("$1::text")} and l.ticket_id = ${asBytes("$11::text")}
  )
  select token as "token" from put`),

    /**
     * Any lock, while nobody who is alive waits before the claimant (`$17`: its ticket), whose place ends with it.
     * `was` tells a row that somebody who entered the line has written since, and so after this look at the line. A lock
     * that nobody ever held has no row for the two to meet on: there, of a claim and an entry at once, both may find the
     * lock free, and the next look of who waits tells.
     */
    claimLock: named(`
  with seen as materialized (
    select c.xmin as was, (c.version = $13::bigint and c.fingerprint = $10::text
      and c.attempt_id <> ${asBytes("$2::text")} and ${isFree}) is true as open
    from ${claims} c where c.id = ${asBytes("$1::text")}
  ), ahead as materialized (
    ${ahead("$17::text")}
  ), fence as materialized (
    select from ${claims} l
    where l.id = ${asBytes("$14::text")} and l.kind = 'lock' and l.attempt_id = ${asBytes("$15::text")}
      and l.token = $16::bigint and l.state = 'claimed' and not l.abandoned
      and not exists (select from seen where not open) and not exists (select from ahead)
    for key share
  ), put as (
    insert into ${claims} as c (${claimed})
    select ${asked}, ${granted("$12::bigint")}
    where not exists (select from seen where not open) and not exists (select from ahead)
      and ($14::text is null or exists (select from fence))
    ${overwrite} and c.xmin = (select was from seen)
    returning c.attempt_id, c.token
  ), gone as (
    update ${line} l set lease_until = 'epoch' from put
    where l.claim_id = ${asBytes("$1::text")} and l.ticket_id = ${asBytes("$17::text")}
  )
  select ${asHex("put.attempt_id")} as "wonBy", put.token as "wonToken",
    $14::text is not null and not exists (select from fence) as "fenced", exists (select from ahead) as "behind",
    case when put.attempt_id is null then ${found} end as "record"
  from (select) as one left join put on true`),

    /**
     * Many requests that name no version: each can only insert. It waits for no row that is there, so a blocked one holds
     * up none of its neighbours; what is left without an answer is asked for alone. It inserts in the order of the list,
     * which is that of the ids, because two lists that insert the same keys wait for each other.
     */
    claimMany: named(`
  with clock as materialized (
    select ${now} as now
  ), put as (
    insert into ${claims} (${claimed})
    select ${requested}, 'claimed', 1, 1, clock.now + ${lasting("r.lease_ms")}, clock.now, clock.now
    from clock cross join ${lists(asking)}
    on conflict (id) do nothing
    returning id, attempt_id
  )
  ${wonBy}
  union all
  select null, ${record}
  from (select r.id from unnest($1::text::bytea[]) as r (id)
    where not exists (select from put where put.id = r.id) offset 0) r
  cross join lateral (select * from ${claims} c where c.id = r.id offset 0) c`),

    /** The same under locks, which are locked only for requests that have to write. */
    claimManyFenced: named(`
  with req as materialized (
    select * from ${lists({ ...asking, fence_id: "bytea", fence_attempt: "bytea", fence_token: "bigint" })}
  ), seen as materialized (
    select r.ord, c.* from req r cross join lateral (select * from ${claims} c where c.id = r.id offset 0) c
  ), fence as materialized (
    select l.* from (
      select distinct r.fence_id as id from req r
      where r.fence_id is not null and not exists (select from seen s where s.ord = r.ord)
      order by 1) w
    cross join lateral (
      select l.id, l.attempt_id, l.token from ${claims} l
      where l.id = w.id and l.kind = 'lock' and l.state = 'claimed' and not l.abandoned
      for key share skip locked) l
  ), put as (
    insert into ${claims} (${claimed})
    select ${requested}, ${granted("r.lease_ms")}
    from req r
    where not exists (select from seen s where s.ord = r.ord)
      and (r.fence_id is null or (r.fence_id, r.fence_attempt, r.fence_token) in (select id, attempt_id, token from fence))
    order by id
    on conflict (id) do nothing
    returning attempt_id
  )
  ${wonBy}
  union all
  select null, ${record} from seen c`),
  };
}
