import { createHash } from "node:crypto";

/** One with a name is prepared, where the client can. */
export interface Statement {
  readonly text: string;
  readonly name?: string;
}

/**
 * The server's clock, in whole milliseconds. `now()` is when the transaction began: a statement that has waited for a row
 * would judge the lease on it by a time before its wait, and inside of somebody's transaction by one long gone. What is
 * *written* before the wait is a shorter lease than asked for, which its holder, who counts from before it asked, never
 * relies on. And a lease that was renewed during the wait is told by the row's version, whatever the clock says.
 */
export const now: string = "clock_timestamp()::timestamptz(3)";

export const asBytes = (text: string): string => `decode(${text}, 'hex')`;
export const asHex = (column: string): string => `encode(${column}, 'hex')`;
export const asMs = (moment: string): string => `(extract(epoch from ${moment}) * 1000)::bigint`;
export const lasting = (ms: string): string => `${ms} * interval '1 millisecond'`;

export const isFree: string = `(c.state = 'released'
      or c.kind = 'lock' and c.state = 'claimed' and (c.abandoned or c.lease_until <= ${now}))`;

/** `deriveState` in SQL. */
export const derived: string = `case
    when state <> 'claimed' then state
    when not abandoned and lease_until > ${now} then 'claimed'
    when kind = 'effect' then 'in-doubt'
    else 'lapsed'
  end`;

/**
 * The row as one text, for `toRecord`: to describe its many columns to the client costs as much as a claim, and so would
 * an expression for each. The ids apart from it, because how a row shows bytes is a setting of the connection.
 */
export const record: string = `json_build_object('row', c, 'id', ${asHex("c.id")}, 'attemptId', ${asHex("c.attempt_id")},
    'readAt', ${asMs(now)})::text`;

/**
 * The row of `$1` as one text, by a function of the schema's own, which sees what its statement sees: a statement that
 * holds the expression itself sets it up each time, also where no record is asked for, and that took a third of a claim.
 */
export const recordIn = (schema: string): string => `${schema}.claim_record($1::text)`;

/** A list of columns, each one parameter: an array literal, which every driver passes as the text that it is. */
export function lists(columns: Readonly<Record<string, "bytea" | "text" | "bigint">>): string {
  const arrays = Object.values(columns).map((type, index) => `$${index + 1}::text::${type}[]`);
  return `unnest(${arrays.join(", ")}) with ordinality as r (${Object.keys(columns).join(", ")}, ord)`;
}

/** The claim that `$1`, `$2` and `$3` name, and those that the rows of a list do. */
export const held: string = `c.id = ${asBytes("$1::text")} and c.attempt_id = ${asBytes("$2::text")} and c.token = $3::bigint
      and c.state = 'claimed'`;
export const heldByRequest: string =
  "c.id = r.id and c.attempt_id = r.attempt_id and c.token = r.token and c.state = 'claimed'";

/**
 * Of a lock that is free now: tells those who listen how it was left, if somebody waits. A notification holds up the
 * commits of the whole server for a moment, and an effect sends none. The channel has the schema's name, which is quoted and plain.
 */
export function telling(schema: string): string {
  return `case when c.kind = 'lock' then (
      select pg_notify('${schema.slice(1, -1)}', concat_ws(' ', ${asHex("c.id")}, c.version, c.token))::text from ${schema}.line l
      where l.claim_id = c.id and l.lease_until > ${now} limit 1) end as told`;
}

/** By its text: on a pooler's shared connections, whoever prepared this name prepared this statement. */
export function named(text: string): Statement {
  return { text, name: `twiceproof_${createHash("sha256").update(text).digest("hex").slice(0, 16)}` };
}
