import type { Database } from "./client.ts";
import { isDuplicateKey, isNoSuchTable, schemaNewer } from "./errors.ts";
import { type MysqlStoreOptions, type Tables, tablesOf } from "./prefix.ts";
import { now } from "./sql.ts";
import { type Statement, sql, varying, withLiterals } from "./statement.ts";

/**
 * Forward only: a step that was released never changes. Each statement commits by itself, so that a step must be able to
 * meet its own work, half done or done by another at the same time. No index is of a column that a statement updates.
 */
const steps: readonly ((tables: Tables) => readonly Statement[])[] = [
  ({ claims, history, line }) => [
    sql`create table if not exists ${claims} (
  id               binary(32) not null primary key,
  namespace        varchar(128) not null,
  kind             varchar(6) character set ascii collate ascii_bin not null,
  \`key\`            varchar(1024) not null,
  name             varchar(512) not null,
  scope            varchar(512),
  turn             varchar(512),
  run_id           varchar(512),
  fingerprint      varchar(255) not null,
  state            varchar(9) character set ascii collate ascii_bin not null,
  token            bigint not null,
  version          bigint not null,
  attempt_id       binary(16) not null,
  holder           varchar(512) not null,
  lease_ms         bigint not null,
  lease_until      bigint not null,
  abandoned        tinyint not null default 0,
  disputed         tinyint not null default 0,
  by_verdict       tinyint not null default 0,
  cancel_requested tinyint not null default 0,
  created_at       bigint not null,
  claimed_at       bigint not null,
  settled_at       bigint,
  settle_id        binary(16),
  result_format    varchar(255),
  result           longtext,
  key created (namespace, created_at, id)
) engine = innodb, default character set utf8mb4, collate utf8mb4_bin, row_format = dynamic`,
    sql`create table if not exists ${history} (
  entry         bigint not null auto_increment primary key,
  claim_id      binary(32) not null,
  at            bigint not null,
  token         bigint not null,
  attempt_id    binary(16),
  what          varchar(32) character set ascii collate ascii_bin not null,
  who           mediumtext,
  why           mediumtext,
  evidence      mediumtext,
  decision_id   binary(16),
  result_format varchar(255),
  result        longtext,
  key claim (claim_id)
) engine = innodb, default character set utf8mb4, collate utf8mb4_bin, row_format = dynamic`,
    sql`create table if not exists ${line} (
  claim_id    binary(32) not null,
  place       bigint not null,
  ticket_id   binary(16) not null,
  run_id      varchar(512),
  holder      varchar(512) not null,
  queued_at   bigint not null,
  lease_until bigint not null,
  primary key (claim_id, place)
) engine = innodb, default character set utf8mb4, collate utf8mb4_bin, row_format = dynamic`,
  ],
];

const schemaTable = ({ schema }: Tables): Statement => sql`create table if not exists ${schema} (
  version int not null primary key,
  at      bigint not null
) engine = innodb`;

const recordStep = ({ schema }: Tables, version: number): Statement =>
  sql`insert into ${schema} (version, at)
  select ${version}, ${now} from dual where not exists (select 1 from ${schema} where version = ${version})`;

/** Several workers at once are fine: what one has made, the other finds. */
export async function migrate(db: Database, tables: Tables): Promise<void> {
  const found = await schemaVersion(db, tables);
  if (found === steps.length) return;
  await db.write(varying(schemaTable(tables)));
  for (let version = found + 1; version <= steps.length; version++) {
    for (const statement of steps[version - 1]?.(tables) ?? []) await db.write(varying(statement));
    await db.write(varying(recordStep(tables, version))).catch((error: unknown) => {
      if (!isDuplicateKey(error)) throw error;
    });
  }
}

/** The same as text, for those who keep their migrations themselves. Running it again changes nothing. */
export function printMigrations(options: MysqlStoreOptions = {}): string {
  const tables = tablesOf(options);
  const made = steps.flatMap((step, index) => [...step(tables), recordStep(tables, index + 1)]);
  return [schemaTable(tables), ...made].map((statement) => `${withLiterals(statement)};\n`).join("\n");
}

/** @throws TwiceproofError `STORE_SCHEMA_NEWER` */
export async function checkSchema(db: Database, tables: Tables): Promise<boolean> {
  return (await schemaVersion(db, tables)) === steps.length;
}

async function schemaVersion(db: Database, { schema }: Tables): Promise<number> {
  try {
    const [row] = await db.rows(varying(sql`select coalesce(max(version), 0) as version from ${schema}`));
    const version = Number(row?.version);
    if (version > steps.length) throw schemaNewer(version, steps.length);
    return version;
  } catch (error) {
    if (isNoSuchTable(error)) return 0;
    throw error;
  }
}
