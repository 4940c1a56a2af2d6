import { TwiceproofError } from "@twiceproof/core/store";
import { type Database, immediately } from "./database.ts";
import { now } from "./sql.ts";

/**
 * Forward only: a step that was released never changes. The index is of a column that no statement updates. Claims have a
 * rowid, so that those of one list lie together and their settlement writes few pages: 10.9k pairs a second against 7.0k
 * without (64 callers, one run after the other).
 */
const steps: readonly string[] = [
  `create table twiceproof_claims (
    id               blob    not null primary key check (length(id) = 32),
    namespace        text    not null,
    kind             text    not null,
    key              text    not null,
    name             text    not null,
    scope            text,
    turn             text,
    run_id           text,
    fingerprint      text    not null,
    state            text    not null,
    token            integer not null,
    version          integer not null,
    attempt_id       blob    not null check (length(attempt_id) = 16),
    holder           text    not null,
    lease_ms         integer not null,
    lease_until      integer not null,
    abandoned        integer not null default 0,
    disputed         integer not null default 0,
    by_verdict       integer not null default 0,
    cancel_requested integer not null default 0,
    created_at       integer not null,
    claimed_at       integer not null,
    settled_at       integer,
    result_format    text,
    result           text
  ) strict;
  create index twiceproof_claims_created on twiceproof_claims (namespace, created_at, id);
  create table twiceproof_history (
    entry         integer primary key,
    claim_id      blob    not null,
    at            integer not null,
    token         integer not null,
    attempt_id    blob,
    what          text    not null,
    who           text,
    why           text,
    evidence      text,
    decision_id   blob,
    result_format text,
    result        text
  ) strict;
  create index twiceproof_history_claim on twiceproof_history (claim_id);
  create table twiceproof_line (
    place       integer primary key,
    claim_id    blob    not null,
    ticket_id   blob    not null check (length(ticket_id) = 16),
    run_id      text,
    holder      text    not null,
    queued_at   integer not null,
    lease_until integer not null,
    unique (claim_id, ticket_id)
  ) strict;`,
];

/** Takes the write lock only when a step is missing, and looks again under it: several processes at once are fine. */
export function migrate(db: Database): void {
  if (schemaVersion(db) === steps.length) return;
  immediately(db, () => {
    db.exec("create table if not exists twiceproof_schema (version integer primary key, at integer not null) strict");
    for (let version = schemaVersion(db) + 1; version <= steps.length; version++) {
      db.exec(steps[version - 1] as string);
      db.exec(`insert into twiceproof_schema (version, at) values (${version}, ${now})`);
    }
  });
}

/** @throws TwiceproofError `STORE_SCHEMA_NEWER` */
function schemaVersion(db: Database): number {
  const [table] = db.all("select 1 from sqlite_schema where type = 'table' and name = 'twiceproof_schema'");
  if (table === undefined) return 0;
  const version = Number(db.all("select coalesce(max(version), 0) as version from twiceproof_schema")[0]?.version);
  if (version <= steps.length) return version;
  throw new TwiceproofError(
    "STORE_SCHEMA_NEWER",
    "This database was written by a newer version of Twiceproof; upgrade @twiceproof/store-sqlite.",
    { help: `Schema ${version} was found, and this version knows ${steps.length}. Nothing was changed.` },
  );
}
