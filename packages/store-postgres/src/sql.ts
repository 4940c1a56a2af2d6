import {
  asBytes,
  asHex,
  asMs,
  derived,
  held,
  lasting,
  named,
  now,
  record,
  type Statement,
  telling,
} from "./fragments.ts";
import { claimStatements } from "./sql-claim.ts";
import { holdStatements } from "./sql-hold.ts";
import { lineStatements } from "./sql-line.ts";

type RareStatement =
  | "fence"
  | "lookDecided"
  | "amend"
  | "note"
  | "abandon"
  | "get"
  | "list"
  | "history"
  | "prune"
  | "dropResults"
  | "version";

export type Statements = Readonly<Record<RareStatement, Statement>> &
  ReturnType<typeof claimStatements> &
  ReturnType<typeof holdStatements> &
  ReturnType<typeof lineStatements>;

/**
 * Every statement, in the order of the `Store` interface. Each is one transaction of its own, so that they suit poolers
 * that lend a connection for one transaction. Ids travel as hex and are kept as bytes. `schema` is checked, and quoted.
 *
 * Row locks, weakest first: a claim under a fence takes `for key share` on the lock's row, which a heartbeat's `for no key
 * update` neither waits for nor holds up. Whoever ends a claim takes `for update`, and waits for the claims under it that
 * are under way; those that come later wait for it, look again, and are refused (promise 14). An upsert takes `for update`
 * because it names the key column; a plain update of other columns does not.
 */
export function statements(schema: string): Statements {
  const claims = `${schema}.claims`;
  const history = `${schema}.history`;
  const line = `${schema}.line`;
  const told = telling(schema);
  const addHistory = `insert into ${history} (
      claim_id, at, token, attempt_id, what, who, why, evidence, decision_id, result_format, result)`;

  return {
    ...claimStatements(schema),
    ...holdStatements(claims, history, told),
    ...lineStatements(claims, line),

    /** For a transaction of somebody else's. Without a name: that client's prepared statements are not ours. */
    fence: {
      text: `
  select 1 as held from ${claims} l
  where l.id = ${asBytes("$1::text")} and l.kind = 'lock' and l.attempt_id = ${asBytes("$2::text")}
    and l.token = $3::bigint and l.state = 'claimed' and not l.abandoned
  for key share`,
    },

    /** The record, and what this decision has decided already. */
    lookDecided: named(`
  select ${record} as "record", (
    select json_build_object('token', h.token, 'what', h.what, 'format', h.result_format, 'text', h.result)::text
    from ${history} h where h.claim_id = c.id and h.decision_id = ${asBytes("$2::text")}) as "decided"
  from ${claims} c where c.id = ${asBytes("$1::text")}`),

    /**
     * What `judgeSettlement` or `judgeVerdict` decided on a record, if it still stands as it was read, and the history. With
     * an attempt id of its own (`$19`) it is under the next token.
     */
    amend: named(`
  with mine as materialized (
    select c.id from ${claims} c where c.id = ${asBytes("$1::text")} and c.version = $2::bigint for update
  ), put as (
    update ${claims} c
    set version = c.version + 1, state = $3::text, settled_at = case $3::text when 'claimed' then null when c.state then c.settled_at else ${now} end,
      result_format = $4::text, result = $5::text, abandoned = $6::boolean, disputed = $7::boolean,
      by_verdict = $8::boolean, cancel_requested = $9::boolean,
      token = c.token + case when $19::text is null then 0 else 1 end, attempt_id = coalesce(${asBytes("$19::text")}, c.attempt_id)
    from mine m where c.id = m.id
    returning c.id, ${told}
  ), told as (
    ${addHistory}
    select id, ${now}, $10::bigint, ${asBytes("$11::text")}, $12::text, $13::text, $14::text, $15::text,
      ${asBytes("$16::text")}, $17::text, $18::text
    from put where $12::text is not null
    on conflict do nothing
  )
  select ${asHex("id")} as "id" from put`),

    /** A word for the history alone, about a record that still stands as it was read. The index keeps it from being there twice. */
    note: named(`
  with mine as materialized (
    select c.id from ${claims} c where c.id = ${asBytes("$1::text")} and c.version = $2::bigint for no key update
  ), told as (
    ${addHistory}
    select id, ${now}, $3::bigint, ${asBytes("$4::text")}, $5::text, null, null, null, null, $6::text, $7::text from mine
    on conflict do nothing
  )
  select ${asHex("id")} as "id" from mine`),

    abandon: named(`
  with mine as materialized (
    select c.id from ${claims} c where ${held} and not c.abandoned for update
  ), put as (
    update ${claims} c set version = c.version + 1, abandoned = true from mine m where c.id = m.id
    returning c.id, c.holder, ${told}
  )
  ${addHistory}
  select id, ${now}, $3::bigint, ${asBytes("$2::text")}, 'abandoned', holder, $4::text, null, null, null, null from put
  on conflict do nothing`),

    get: {
      text: `
  select ${record} as "record" from unnest($1::text::bytea[]) as r (id)
  cross join lateral (select * from ${claims} c where c.id = r.id offset 0) c`,
    },

    list: {
      text: `
  select ${record} as "record" from ${claims} c
  where c.namespace = $1::text
    and (c.created_at, c.id) > (timestamptz 'epoch' + ${lasting("$2::bigint")}, ${asBytes("$3::text")})
    and ($4::text is null or c.kind = $4) and ($5::text is null or c.scope = $5) and ($6::text is null or c.name = $6)
    and ($7::text is null or $7 = ${derived})
  order by c.created_at, c.id limit $8::bigint`,
    },

    history: {
      text: `
  select ${asMs("at")} as "at", token as "token", ${asHex("attempt_id")} as "attemptId", what as "what", who as "who",
    why as "why", evidence as "evidence", ${asHex("decision_id")} as "decisionId", result_format as "format",
    result as "text"
  from ${history} where claim_id = ${asBytes("$1::text")} order by entry`,
    },

    /** What was settled long ago was created long ago: that bound is the one with an index. */
    prune: {
      text: `
  with gone as (
    delete from ${claims} where id in (
      select c.id from ${claims} c
      where c.namespace = $1::text and c.created_at < ${now} - ${lasting("$2::bigint")}
        and c.kind = 'effect' and c.state <> 'claimed' and c.settled_at < ${now} - ${lasting("$2::bigint")}
      order by c.created_at, c.id limit $3::bigint for update skip locked)
    returning id
  ), told as (
    delete from ${history} h using gone where h.claim_id = gone.id
  )
  select count(*) as "removed" from gone`,
    },

    dropResults: {
      text: `
  with kept as (
    update ${claims} set version = version + 1, result_format = null, result = null where id in (
      select c.id from ${claims} c
      where c.namespace = $1::text and c.created_at < ${now} - ${lasting("$2::bigint")} and c.kind = 'effect'
        and c.state <> 'claimed' and c.settled_at < ${now} - ${lasting("$2::bigint")} and c.result_format is not null
      order by c.created_at, c.id limit $3::bigint for update skip locked)
    returning id
  ), told as (
    update ${history} h set result_format = null, result = null from kept where h.claim_id = kept.id
  )
  select count(*) as "removed" from kept`,
    },

    version: { text: `select max(version) as "version" from ${schema}.migrations` },
  };
}

export const health: Statement = {
  text: `
  select ${asMs(now)} as "now", current_setting('server_version_num')::int as "version", pg_is_in_recovery() as "standby",
    current_setting('transaction_isolation') as "isolation", current_setting('synchronous_commit') as "commit",
    current_setting('fsync') as "fsync", current_setting('server_encoding') as "encoding"`,
};
