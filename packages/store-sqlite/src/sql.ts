/**
 * Every statement, in the order of the `Store` interface. Ids travel as hex and are kept as bytes. The one clock is
 * SQLite's own: a lease must not be judged by two (promise 11).
 */
export const now: string = "cast(unixepoch('subsec') * 1000 as integer)";

/** `deriveState` in SQL. */
const derived = `case
    when state <> 'claimed' then state
    when abandoned = 0 and lease_until > ${now} then 'claimed'
    when kind = 'effect' then 'in-doubt'
    else 'lapsed'
  end`;

export const record: string = `lower(hex(id)) as id, lower(hex(attempt_id)) as attemptId, token, namespace, kind, key, name, scope, turn,
  run_id as runId, fingerprint, holder, state, version, lease_ms as leaseMs, lease_until as leaseUntil,
  created_at as createdAt, claimed_at as claimedAt, settled_at as settledAt, ${now} as readAt,
  abandoned, disputed, by_verdict as byVerdict, cancel_requested as cancelRequested, result_format as format, result as text`;

const claimed = `id, namespace, kind, key, name, scope, turn, run_id, fingerprint, state, token, version, attempt_id, holder,
    lease_ms, lease_until, created_at, claimed_at`;

const granted = `unhex(:id), :namespace, :kind, :key, :name, :scope, :turn, :runId, :fingerprint, 'claimed', 1, 1,
    unhex(:attemptId), :holder, :leaseMs, ${now} + :leaseMs, ${now}, ${now}`;

/**
 * A key without a row, outside of runs: what most claims are, at half of the cost of the other. A row that it wrote is the
 * claimant's: to have it told costs a quarter.
 */
export const claimNew: string = `
  insert into twiceproof_claims (${claimed}) values (${granted})
  on conflict (id) do nothing`;

/**
 * A key without a row, or the free row whose version the claimant names, under a lock that its run still holds. What
 * comes back is the row as written; nothing comes back when any of it is not so, and then nothing was written.
 */
const claimIf = (turn: string): string => `
  insert into twiceproof_claims as c (${claimed})
  select ${granted}
  where (:fenceId is null or exists (
    select 1 from twiceproof_claims
    where id = unhex(:fenceId) and kind = 'lock' and attempt_id = unhex(:fenceAttemptId) and token = :fenceToken
      and state = 'claimed' and abandoned = 0))${turn}
  on conflict (id) do update set
    name = excluded.name, scope = excluded.scope, turn = excluded.turn, run_id = excluded.run_id, state = 'claimed',
    token = c.token + 1, version = c.version + 1, attempt_id = excluded.attempt_id, holder = excluded.holder,
    lease_ms = excluded.lease_ms, lease_until = excluded.lease_until, abandoned = 0, disputed = 0, by_verdict = 0,
    cancel_requested = 0,
    claimed_at = excluded.claimed_at, settled_at = null, result_format = null, result = null
  where c.version = :seen and c.fingerprint = excluded.fingerprint and c.attempt_id <> excluded.attempt_id
    and (c.state = 'released'
      or c.kind = 'lock' and c.state = 'claimed' and (c.abandoned = 1 or c.lease_until <= ${now}))
  returning lower(hex(attempt_id)) as attemptId, token`;

export const claim: string = claimIf("");

/** Of a lock: while nobody who is alive waits before the claimant; without a place, while nobody waits. */
export const claimLock: string = claimIf(`
    and not exists (
      select 1 from twiceproof_line
      where claim_id = unhex(:id) and lease_until > ${now} and place < ifnull((
        select place from twiceproof_line
        where claim_id = unhex(:id) and ticket_id = unhex(:ticketId) and lease_until > ${now}), 9223372036854775807))`);

const held = "id = unhex(:id) and attempt_id = unhex(:attemptId) and token = :token and state = 'claimed'";

export const renew: string = `
  update twiceproof_claims
  set version = version + 1, lease_until = max(lease_until, ${now} + :leaseMs),
    lease_ms = iif(${now} + :leaseMs > lease_until, :leaseMs, lease_ms)
  where ${held} and abandoned = 0
  returning cancel_requested as cancelRequested`;

/** A claim that meets its own settlement, also late or given up; what is disputed is for `judgeSettlement`. */
export const settle: string = `
  update twiceproof_claims
  set version = version + 1, state = :state, settled_at = ${now}, result_format = :format, result = :text
  where ${held} and disputed = 0 and not (kind = 'effect' and cancel_requested = 1 and :state = 'released')`;

/** What `judgeSettlement` or `judgeVerdict` decided, on a row read in the same transaction. */
export const decide: string = `
  update twiceproof_claims
  set version = version + 1, state = :state, settled_at = ${now}, result_format = :format, result = :text,
    by_verdict = :byVerdict, disputed = 0
  where id = unhex(:id)`;

export const dispute: string = `
  update twiceproof_claims
  set version = version + 1, state = 'claimed', abandoned = 1, disputed = 1, by_verdict = 0, settled_at = null,
    result_format = null, result = null
  where id = unhex(:id)`;

export const requestCancel: string = `
  update twiceproof_claims set version = version + 1, cancel_requested = 1 where id = unhex(:id)`;

export const findLate: string = `
  select 1 as found from twiceproof_history
  where claim_id = unhex(:id) and attempt_id = unhex(:attemptId) and what = 'late-' || :state
  limit 1`;

export const abandon: string = `
  update twiceproof_claims set version = version + 1, abandoned = 1
  where ${held} and abandoned = 0
  returning holder`;

export const addHistory: string = `
  insert into twiceproof_history (claim_id, at, token, attempt_id, what, who, why, evidence, decision_id, result_format, result)
  values (unhex(:claimId), ${now}, :token, unhex(:attemptId), :what, :who, :why, :evidence, unhex(:decisionId), :format, :text)`;

/** For a transaction of somebody else's, whose statements have parameters by place. */
export const fence: string = `
  select 1 as held from twiceproof_claims
  where id = unhex(?) and kind = 'lock' and attempt_id = unhex(?) and token = ? and state = 'claimed' and abandoned = 0`;

export const get: string = `
  select ${record} from twiceproof_claims where id in (select unhex(value) from json_each(:ids))`;

export const getOne: string = `select ${record} from twiceproof_claims where id = unhex(:id)`;

export const list: string = `
  select ${record} from twiceproof_claims
  where namespace = :namespace and (created_at, id) > (:afterAt, unhex(:afterId))
    and (:kind is null or kind = :kind) and (:scope is null or scope = :scope) and (:name is null or name = :name)
    and (:state is null or :state = ${derived})
  order by created_at, twiceproof_claims.id limit :limit`;

export const history: string = `
  select at, token, lower(hex(attempt_id)) as attemptId, what, who, why, evidence, lower(hex(decision_id)) as decisionId,
    result_format as format, result as text
  from twiceproof_history where claim_id = unhex(:id) order by entry`;

/** What was settled long ago was created long ago: that bound is the one with an index. */
export const prune: string = `
  delete from twiceproof_claims where id in (
    select id from twiceproof_claims
    where namespace = :namespace and created_at < ${now} - :olderThanMs
      and kind = 'effect' and state <> 'claimed' and settled_at < ${now} - :olderThanMs
    order by created_at, id limit :limit)
  returning lower(hex(id)) as id`;

export const dropResults: string = `
  update twiceproof_claims set version = version + 1, result_format = null, result = null where id in (
    select id from twiceproof_claims
    where namespace = :namespace and created_at < ${now} - :olderThanMs
      and kind = 'effect' and state <> 'claimed' and settled_at < ${now} - :olderThanMs and result_format is not null
    order by created_at, id limit :limit)
  returning lower(hex(id)) as id`;

export const dropHistoryResults: string = `
  update twiceproof_history set result_format = null, result = null
  where claim_id in (select unhex(value) from json_each(:ids))`;

export const pruneHistory: string = `
  delete from twiceproof_history where claim_id in (select unhex(value) from json_each(:ids))`;

export const health: string = `select ${now} as now`;
