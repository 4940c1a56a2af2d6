import type { ClaimRequest, Settlement } from "@twiceproof/core/store";
import type { Tables } from "./prefix.ts";
import { columns, holds, idList, now, sharedAtOnce, waitsNotAtAll, waitsOneSecond } from "./sql.ts";
import { bytes, hex, isSame, orNull, raw, type Statement, sql, type Value, varying, written } from "./statement.ts";

/** The clock is read once: three times a row it took an eighth of the statement. The `limit` keeps it from being put in there. */
export function insertAll({ claims }: Tables, requests: readonly ClaimRequest[]): Statement {
  const asked = listed(requests, asking);
  return varying(sql`${waitsOneSecond} insert into ${claims} (${columns}) select ${granted(asked, raw("t.now"))}
    from (select ${now} as now limit 1) t straight_join (${asked.table}) r`);
}

/** The rows whose fences hold, and no others. Nothing when a fence cannot be looked at at once: then one by one. */
export function insertFenced({ claims }: Tables, requests: readonly ClaimRequest[]): Statement {
  const asked = listed(requests, { ...asking, ...fencing });
  return varying(sql`${waitsNotAtAll} insert into ${claims} (${columns}) select ${granted(asked, now)}
    from (${asked.table}) r
    where exists (select 1 from ${claims} l
      where l.id = r.fence_id and l.attempt_id = r.fence_attempt and l.token = r.fence_token and ${holds} ${sharedAtOnce})
    order by r.id`);
}

/**
 * As `settle`, for a list: MySQL passes over what another transaction holds, MariaDB has no such update and refuses the
 * whole. `settle_id` tells the rows that this statement settled from those that were settled before.
 */
export function settleAll({ claims }: Tables, settlements: readonly Settlement[], settleId: string): Statement {
  const { table, column } = listed(settlements, settling);
  const open = sql`c.attempt_id = r.attempt_id and c.token = ${column("token")} and c.state = 'claimed' and c.disputed = 0
      and not (c.kind = 'effect' and c.cancel_requested = 1 and ${column("state")} = 'released')`;
  return varying(sql`${waitsNotAtAll} update /*!50701 (select r.* from */ (${table}) r
    /*!50701 straight_join ${claims} c on c.id = r.id
      where ${open}
      limit ${settlements.length} for update skip locked) r */
    straight_join ${claims} c on c.id = r.id
    set c.version = c.version + 1, c.state = ${column("state")}, c.settled_at = ${now}, c.settle_id = ${hex(settleId)},
      c.result_format = ${column("format")}, c.result = ${column("result")}
    /*M! where ${open} */`);
}

export const settledBy = ({ claims }: Tables, ids: readonly string[], settleId: string): Statement =>
  varying(sql`select c.id from ${claims} c where c.id in (${idList(ids)}) and c.settle_id = ${hex(settleId)}`);

type Columns<T> = Readonly<Record<string, (item: T) => Value>>;

const asking: Columns<ClaimRequest> = {
  id: ({ id }) => hex(id),
  namespace: ({ namespace }) => bytes(namespace),
  kind: ({ kind }) => bytes(kind),
  k: ({ key }) => bytes(key),
  name: ({ name }) => bytes(name),
  scope: ({ scope }) => orNull(scope),
  turn: ({ turn }) => orNull(turn),
  run_id: ({ runId }) => orNull(runId),
  fingerprint: ({ fingerprint }) => bytes(fingerprint),
  attempt_id: ({ attemptId }) => hex(attemptId),
  holder: ({ holder }) => bytes(holder),
  lease_ms: ({ leaseMs }) => leaseMs,
};

const fencing: Columns<ClaimRequest> = {
  fence_id: ({ fence }) => fence && hex(fence.id),
  fence_attempt: ({ fence }) => fence && hex(fence.attemptId),
  fence_token: ({ fence }) => fence?.token ?? null,
};

const settling: Columns<Settlement> = {
  id: ({ id }) => hex(id),
  attempt_id: ({ attemptId }) => hex(attemptId),
  token: ({ token }) => token,
  state: ({ state }) => bytes(state),
  format: ({ payload }) => orNull(payload?.format ?? null),
  result: ({ payload }) => payload && { text: payload.text, isLong: true },
};

/** By which the rows meet others. */
const alwaysInRows: ReadonlySet<string> = new Set(["id", "attempt_id", ...Object.keys(fencing)]);

/** The values of a first claim, for `columns`. */
function granted({ column }: Listed, now: Statement): Statement {
  return sql`${column("id")}, ${column("namespace")}, ${column("kind")}, ${column("k")}, ${column("name")},
    ${column("scope")}, ${column("turn")}, ${column("run_id")}, ${column("fingerprint")}, 'claimed', 1, 1,
    ${column("attempt_id")}, ${column("holder")}, ${column("lease_ms")}, ${now} + ${column("lease_ms")}, ${now}, ${now}`;
}

interface Listed {
  /** To be named `r`. */
  readonly table: Statement;
  /** Of a row of `r`; what is the same in all of them stands there itself. */
  readonly column: (name: string) => Statement;
}

/** `values` is the one way of both servers that names its columns, and costs them a tenth less than as many `select`. */
function listed<T extends { readonly id: string }>(items: readonly T[], columns: Columns<T>): Listed {
  const sorted = inOrder(items);
  const shared = new Map<string, Statement>();
  const varied: { readonly name: string; readonly values: readonly Value[] }[] = [];
  for (const [name, of] of Object.entries(columns)) {
    const values = sorted.map(of);
    const [first = null] = values;
    if (!alwaysInRows.has(name) && values.every((value) => isSame(value, first))) shared.set(name, sql`${first}`);
    else varied.push({ name, values });
  }
  const none = raw(varied.map(({ name }) => `null as ${name}`).join(", "));
  const rows = written(sorted.map((_, index) => varied.map(({ values }) => values[index] ?? null)));
  return {
    table: sql`select ${none} from dual where 1 = 0 union all values ${rows}`,
    column: (name) => shared.get(name) ?? raw(`r.${name}`),
  };
}

/** Every list locks its rows in the same order, so that two of them cannot deadlock. */
function inOrder<T extends { readonly id: string }>(items: readonly T[]): readonly T[] {
  return items.toSorted((a, b) => (a.id < b.id ? -1 : 1));
}
