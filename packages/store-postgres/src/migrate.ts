import { TwiceproofError } from "@twiceproof/core/store";
import { asBytes, now, record } from "./fragments.ts";
import { quotedSchema } from "./schema.ts";

/**
 * Forward only: a step that was released never changes. Each statement can be run again, because a pooler has no
 * transaction round a step.
 *
 * No check constraints: each statement parses them anew, which took 0.05 ms of a claim's 0.27. The one index of claims
 * besides its key is of columns that no statement updates, so that updates stay on their page, where `fillfactor` leaves
 * room for them: with results of 200 bytes at 35 for all, at 50 for two in three, and that cost a fifth of a settlement.
 * Results over 2 kB are out of line, and as they are: those that gain by it come compressed.
 *
 * The table starts with 130 pages and keeps them. A prepared statement that is planned while the table has two or three
 * reads all of it, and still does when it has grown, until somebody analyses it: 60 ms instead of 0.5 at 100,000 rows.
 * For the same reason the other index has no `id`, by which such a plan would search all of that: 780 ms a list.
 */
const steps: readonly ((schema: string) => readonly string[])[] = [
  (schema) => [
    `create table if not exists ${schema}.claims (
  id               bytea          not null primary key,
  namespace        text           not null collate "C",
  kind             text           not null,
  key              text           not null,
  name             text           not null collate "C",
  scope            text           collate "C",
  turn             text,
  run_id           text,
  fingerprint      text           not null collate "C",
  state            text           not null,
  token            bigint         not null,
  version          bigint         not null,
  attempt_id       bytea          not null,
  holder           text           not null,
  lease_ms         bigint         not null,
  lease_until      timestamptz(3) not null,
  abandoned        boolean        not null default false,
  disputed         boolean        not null default false,
  by_verdict       boolean        not null default false,
  cancel_requested boolean        not null default false,
  created_at       timestamptz(3) not null,
  claimed_at       timestamptz(3) not null,
  settled_at       timestamptz(3),
  result_format    text,
  result           text
) with (fillfactor = 35, autovacuum_vacuum_scale_factor = 0.02, vacuum_truncate = off)`,
    `alter table ${schema}.claims alter column result set storage external`,
    `insert into ${schema}.claims (id, attempt_id, namespace, kind, key, name, fingerprint, holder, lease_ms, state, token, version,
  lease_until, created_at, claimed_at)
select decode(lpad(to_hex(page), 64, '0'), 'hex'), '', '', '', repeat(' ', 1800), '', '', '', 0, '', 0, 0, 'epoch', 'epoch', 'epoch'
from generate_series(1, 130) as page on conflict do nothing`,
    `delete from ${schema}.claims where namespace = '' and kind = ''`,
    `create index if not exists claims_created on ${schema}.claims (namespace, created_at)`,
    `create table if not exists ${schema}.history (
  entry         bigint         generated always as identity primary key,
  claim_id      bytea          not null,
  at            timestamptz(3) not null,
  token         bigint         not null,
  attempt_id    bytea,
  what          text           not null,
  who           text,
  why           text,
  evidence      text,
  decision_id   bytea,
  result_format text,
  result        text
)`,
    `create index if not exists history_claim on ${schema}.history (claim_id, entry)`,
    `create unique index if not exists history_word on ${schema}.history (claim_id, attempt_id, what)
  where attempt_id is not null`,
    `create table if not exists ${schema}.line (
  claim_id    bytea          not null,
  place       bigint         not null,
  ticket_id   bytea          not null,
  run_id      text,
  holder      text           not null,
  queued_at   timestamptz(3) not null,
  lease_until timestamptz(3) not null,
  primary key (claim_id, place)
)`,
    // In PL/pgSQL, which keeps its plan: a function in SQL is planned anew for each statement before PostgreSQL 18. It has no
    // `if not exists`, and `or replace` fails for all but one of those who do it at once.
    `do $do$ begin
  create function ${schema}.claim_record(wanted text) returns text language plpgsql stable as
  $$ begin return (select ${record} from ${schema}.claims c where c.id = ${asBytes("wanted")}); end $$;
exception when duplicate_function or unique_violation then null; end $do$`,
  ],
];

export const latest: number = steps.length;

/** What brings a schema of this version to the latest, one statement after the other. */
export function migrations(schema: string, from: number, exists: boolean): readonly string[] {
  if (from === latest) return [];
  return [
    ...(exists ? [] : [`create schema if not exists ${schema}`]),
    `create table if not exists ${schema}.migrations (version integer primary key, at timestamptz(3) not null)`,
    ...steps
      .slice(from)
      .flatMap((step, index) => [
        ...step(schema),
        `insert into ${schema}.migrations (version, at) values (${from + index + 1}, ${now}) on conflict do nothing`,
      ]),
  ];
}

/** What `store.migrate()` runs on an empty database, for those whose ORM owns the migrations. */
export function printMigrations(options: { readonly schema?: string } = {}): string {
  const { schema = "twiceproof" } = options;
  return migrations(quotedSchema(schema), 0, false)
    .map((statement) => `${statement};\n`)
    .join("\n");
}

/** @throws TwiceproofError `STORE_SCHEMA_NEWER` */
export function checkVersion(version: number): number {
  if (version <= latest) return version;
  throw new TwiceproofError(
    "STORE_SCHEMA_NEWER",
    "This database was written by a newer version of Twiceproof; upgrade @twiceproof/store-postgres.",
    { help: `Schema ${version} was found, and this version knows ${latest}. Nothing was changed.` },
  );
}
