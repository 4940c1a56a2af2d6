import type {
  ClaimRef,
  ClaimRequest,
  HistoryEntry,
  ListQuery,
  Payload,
  PruneQuery,
  Settlement,
} from "@twiceproof/core/store";
import type { Tables } from "./prefix.ts";
import { bytes, hex, join, orNull, raw, type Statement, sql, varying } from "./statement.ts";

/** The one clock, in whole milliseconds: `utc_timestamp` and a difference do not depend on the session's time zone. */
export const now: Statement = raw("(timestampdiff(microsecond, '1970-01-01', utc_timestamp(6)) div 1000)");

/** Text leaves as bytes, which no connection's character set changes. */
export const record: Statement = sql`c.id, c.attempt_id as attemptId, c.token, cast(c.namespace as binary) as namespace, c.kind,
  cast(c.\`key\` as binary) as claimKey, cast(c.name as binary) as name, cast(c.scope as binary) as scope,
  cast(c.turn as binary) as turn, cast(c.run_id as binary) as runId, cast(c.fingerprint as binary) as fingerprint,
  cast(c.holder as binary) as holder, c.state, c.version, c.lease_ms as leaseMs, c.lease_until as leaseUntil,
  c.created_at as createdAt, c.claimed_at as claimedAt, c.settled_at as settledAt, ${now} as readAt, c.abandoned,
  c.disputed, c.by_verdict as byVerdict, c.cancel_requested as cancelRequested,
  cast(c.result_format as binary) as format, cast(c.result as binary) as result`;

/** `deriveState` in SQL. */
const derived: Statement = sql`case
    when c.state <> 'claimed' then c.state
    when c.abandoned = 0 and c.lease_until > ${now} then 'claimed'
    when c.kind = 'effect' then 'in-doubt'
    else 'lapsed'
  end`;

export const columns: Statement =
  raw(`id, namespace, kind, \`key\`, name, scope, turn, run_id, fingerprint, state, token, version,
  attempt_id, holder, lease_ms, lease_until, created_at, claimed_at`);

/**
 * What one server knows and the other does not, in comments that only that one reads: MariaDB reads `M!` and skips the
 * versions 50700 to 50999. How long a statement waits for a row that another transaction holds:
 */
export const waitsNotAtAll: Statement = raw("/*M! set statement innodb_lock_wait_timeout = 0 for */");
export const waitsOneSecond: Statement = raw("/*M! set statement innodb_lock_wait_timeout = 1 for */");
const selectForOneSecond = raw("select /*+ max_execution_time(1000) */");
const forUpdateWithinOneSecond = raw("for update /*M! wait 1 */");
/** Written out: at READ COMMITTED a look-up without it lets a takeover pass that commits while the claim waits. */
const shared = raw("lock in share mode");
export const sharedAtOnce: Statement = raw("/*!50701 for share nowait */ /*M! lock in share mode */");

export const holds: Statement = raw("l.kind = 'lock' and l.state = 'claimed' and l.abandoned = 0");

/** Every statement, in the order of the `Store` interface. Those that name one row have one text, and are prepared. */
function heldLock({ id, attemptId, token }: ClaimRef): Statement {
  return sql`l.id = ${hex(id)} and l.attempt_id = ${hex(attemptId)} and l.token = ${token} and ${holds}`;
}

/** Of a key that has no row; a duplicate key is the answer that it has one. */
export function insert({ claims }: Tables, request: ClaimRequest): Statement {
  const { fence } = request;
  return fence === null
    ? sql`insert into ${claims} (${columns}) values (${granted(request)})`
    : sql`insert into ${claims} (${columns}) select ${granted(request)} from ${claims} l where ${heldLock(fence)} ${shared}`;
}

/** For a transaction of somebody else's. */
export const fence = ({ claims }: Tables, ref: ClaimRef): Statement =>
  sql`select 1 as held from ${claims} l where ${heldLock(ref)} ${shared}`;

/** What else a statement about a row `c` looks at and writes. */
export interface Beside {
  readonly joined: Statement;
  readonly set: Statement;
  readonly where: Statement;
}

const nothing: Beside = { joined: raw(""), set: raw(""), where: raw("") };

/** What a claim writes into a free row. The answer that counts the rows tells the new token too. */
export function again(request: ClaimRequest): Statement {
  return sql`c.name = ${bytes(request.name)}, c.scope = ${orNull(request.scope)}, c.turn = ${orNull(request.turn)},
      c.run_id = ${orNull(request.runId)}, c.state = 'claimed', c.token = last_insert_id(c.token + 1),
      c.version = c.version + 1, c.attempt_id = ${hex(request.attemptId)}, c.holder = ${bytes(request.holder)},
      c.lease_ms = ${request.leaseMs}, c.lease_until = ${now} + ${request.leaseMs}, c.abandoned = 0, c.disputed = 0,
      c.by_verdict = 0, c.cancel_requested = 0, c.claimed_at = ${now}, c.settled_at = null, c.settle_id = null,
      c.result_format = null, c.result = null`;
}

/** Of the free row that was read: its attempt and version say that it is still as it was. */
export function claimAgain(
  { claims }: Tables,
  request: ClaimRequest,
  read: { readonly version: number; readonly attemptId: string },
  beside: Beside = nothing,
): Statement {
  const { fence } = request;
  const lock = fence && sql`(select l.id from ${claims} l where ${heldLock(fence)} limit 1 ${shared}) f straight_join`;
  return sql`update ${lock ?? raw("")} ${claims} c ${beside.joined} set ${again(request)}${beside.set}
    where c.id = ${hex(request.id)} and c.version = ${read.version} and c.attempt_id = ${hex(read.attemptId)}${beside.where}`;
}

/** What can be locked at once: a row that another transaction holds delays no other. */
export const lockForRenewal = ({ claims }: Tables, ids: readonly string[]): Statement =>
  varying(sql`select ${record} from ${claims} c where c.id in (${idList(ids)}) order by c.id for update skip locked`);

export const renew = (
  { claims }: Tables,
  leases: readonly { readonly id: string; readonly leaseMs: number; readonly leaseUntil: number }[],
): Statement => {
  const rows = leases.map(
    ({ id, leaseMs, leaseUntil }) => sql`select ${hex(id)} as id, ${leaseMs} as lease_ms, ${leaseUntil} as lease_until`,
  );
  return varying(sql`update (${join(rows, " union all\n")}) r straight_join ${claims} c on c.id = r.id
    set c.version = c.version + 1, c.lease_ms = r.lease_ms, c.lease_until = r.lease_until`);
};

/** A claim that meets its own settlement, also late or given up; what is disputed is for `judgeSettlement`. */
export const settle = ({ claims }: Tables, { id, attemptId, token, state, payload }: Settlement): Statement =>
  sql`${waitsOneSecond} update ${claims} c
    set c.version = c.version + 1, c.state = ${bytes(state)}, c.settled_at = ${now},
      c.result_format = ${orNull(payload?.format ?? null)}, c.result = ${orNull(payload?.text ?? null)}
    where c.id = ${hex(id)} and c.attempt_id = ${hex(attemptId)} and c.token = ${token} and c.state = 'claimed'
      and c.disputed = 0${state === "released" ? raw(" and not (c.kind = 'effect' and c.cancel_requested = 1)") : raw("")}`;

/** For one transaction that reads, judges and writes; it waits for the row for a second at most. */
export const lock = ({ claims }: Tables, id: string): Statement =>
  sql`${selectForOneSecond} ${record} from ${claims} c where c.id = ${hex(id)} ${forUpdateWithinOneSecond}`;

/** What `judgeSettlement` or `judgeVerdict` decided, on a row that is locked. */
export const decide = (
  { claims }: Tables,
  id: string,
  state: string,
  payload: Payload | null,
  byVerdict: boolean,
): Statement =>
  sql`update ${claims} c
    set c.version = c.version + 1, c.state = ${bytes(state)}, c.settled_at = ${now}, c.settle_id = null,
      c.result_format = ${orNull(payload?.format ?? null)}, c.result = ${orNull(payload?.text ?? null)},
      c.by_verdict = ${Number(byVerdict)}, c.disputed = 0
    where c.id = ${hex(id)}`;

export const dispute = ({ claims }: Tables, id: string): Statement =>
  sql`update ${claims} c
    set c.version = c.version + 1, c.state = 'claimed', c.abandoned = 1, c.disputed = 1, c.by_verdict = 0,
      c.settled_at = null, c.settle_id = null, c.result_format = null, c.result = null
    where c.id = ${hex(id)}`;

export const requestCancel = ({ claims }: Tables, id: string): Statement =>
  sql`update ${claims} c set c.version = c.version + 1, c.cancel_requested = 1 where c.id = ${hex(id)}`;

export const abandon = ({ claims }: Tables, id: string): Statement =>
  sql`update ${claims} c set c.version = c.version + 1, c.abandoned = 1 where c.id = ${hex(id)}`;

export const findLate = ({ history }: Tables, id: string, attemptId: string, state: string): Statement =>
  sql`select 1 as found from ${history} h
    where h.claim_id = ${hex(id)} and h.attempt_id = ${hex(attemptId)} and h.what = ${bytes(`late-${state}`)} limit 1`;

export const addHistory = ({ history }: Tables, id: string, entry: Omit<HistoryEntry, "at">): Statement =>
  sql`insert into ${history} (claim_id, at, token, attempt_id, what, who, why, evidence, decision_id, result_format, result)
    values (${hex(id)}, ${now}, ${entry.token}, ${entry.attemptId === null ? null : hex(entry.attemptId)},
      ${bytes(entry.what)}, ${orNull(entry.who)}, ${orNull(entry.why)}, ${orNull(entry.evidence)},
      ${entry.decisionId === null ? null : hex(entry.decisionId)}, ${orNull(entry.payload?.format ?? null)},
      ${orNull(entry.payload?.text ?? null)})`;

export const get = ({ claims }: Tables, ids: readonly string[]): Statement => {
  const [only] = ids;
  if (ids.length === 1 && only !== undefined) return sql`select ${record} from ${claims} c where c.id = ${hex(only)}`;
  return varying(sql`select ${record} from ${claims} c where c.id in (${idList(ids)})`);
};

export const list = (
  { claims }: Tables,
  { namespace, kind, state, scope, name, limit }: ListQuery,
  afterAt: number,
  afterId: string,
): Statement => {
  const filters = [
    inNamespace(namespace),
    sql`c.created_at >= ${afterAt} and (c.created_at > ${afterAt} or c.id > ${hex(afterId)})`,
    ...(kind === undefined ? [] : [sql`c.kind = ${bytes(kind)}`]),
    ...(scope === undefined ? [] : [sql`cast(c.scope as binary) = ${bytes(scope)}`]),
    ...(name === undefined ? [] : [sql`cast(c.name as binary) = ${bytes(name)}`]),
    ...(state === undefined ? [] : [sql`cast(${derived} as binary) = ${bytes(state)}`]),
  ];
  return varying(sql`select ${record} from ${claims} c where ${join(filters, " and ")}
    order by c.created_at, c.id limit ${limit}`);
};

export const readHistory = ({ history }: Tables, id: string): Statement =>
  sql`select h.at, h.token, h.attempt_id as attemptId, h.what, cast(h.who as binary) as who,
      cast(h.why as binary) as why, cast(h.evidence as binary) as evidence, h.decision_id as decisionId,
      cast(h.result_format as binary) as format, cast(h.result as binary) as result
    from ${history} h where h.claim_id = ${hex(id)} order by h.entry`;

/** What was settled long ago was created long ago: that bound is the one with an index. Takes no lock. */
export const prunable = ({ claims }: Tables, query: PruneQuery): Statement =>
  varying(sql`select c.id from ${claims} c where ${inNamespace(query.namespace)}
    and c.created_at < ${now} - ${query.olderThanMs} and ${isPrunable(query)} order by c.created_at, c.id limit ${query.limit}`);

export const lockForPruning = ({ claims }: Tables, ids: readonly string[], query: PruneQuery): Statement =>
  varying(sql`${selectForOneSecond} c.id from ${claims} c where c.id in (${idList(ids)}) and ${isPrunable(query)}
    order by c.id ${forUpdateWithinOneSecond}`);

export const prune = ({ claims }: Tables, ids: readonly string[]): Statement =>
  varying(sql`delete from ${claims} where id in (${idList(ids)})`);

export const dropResults = ({ claims }: Tables, ids: readonly string[]): Statement =>
  varying(sql`update ${claims} c set c.version = c.version + 1, c.result_format = null, c.result = null
    where c.id in (${idList(ids)})`);

export const dropHistoryResults = ({ history }: Tables, ids: readonly string[]): Statement =>
  varying(sql`update ${history} h set h.result_format = null, h.result = null where h.claim_id in (${idList(ids)})`);

export const pruneHistory = ({ history }: Tables, ids: readonly string[]): Statement =>
  varying(sql`delete from ${history} where claim_id in (${idList(ids)})`);

/** The values of a first claim, for `columns`. */
function granted(request: ClaimRequest): Statement {
  return sql`${hex(request.id)}, ${bytes(request.namespace)}, ${bytes(request.kind)}, ${bytes(request.key)},
    ${bytes(request.name)}, ${orNull(request.scope)}, ${orNull(request.turn)}, ${orNull(request.runId)},
    ${bytes(request.fingerprint)}, 'claimed', 1, 1, ${hex(request.attemptId)}, ${bytes(request.holder)},
    ${request.leaseMs}, ${now} + ${request.leaseMs}, ${now}, ${now}`;
}

/** The collation pads with blanks, so that the index is asked first and the bytes after it. */
function inNamespace(namespace: string): Statement {
  return sql`c.namespace = convert(${bytes(namespace)} using utf8mb4) collate utf8mb4_bin
    and cast(c.namespace as binary) = ${bytes(namespace)}`;
}

function isPrunable({ olderThanMs, keepKeys }: PruneQuery): Statement {
  const settled = sql`c.kind = 'effect' and c.state <> 'claimed' and c.settled_at < ${now} - ${olderThanMs}`;
  return keepKeys ? sql`${settled} and c.result_format is not null` : settled;
}

export function idList(ids: readonly string[]): Statement {
  return join(
    ids.map((id) => sql`${hex(id)}`),
    ", ",
  );
}
