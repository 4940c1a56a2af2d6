import type { Health } from "@twiceproof/core/store";
import type { Connection } from "./client.ts";
import { text } from "./rows.ts";
import { now } from "./sql.ts";
import { raw, sql, varying } from "./statement.ts";

const variables = ["innodb_flush_log_at_trx_commit", "log_bin", "sync_binlog", "read_only", "super_read_only"];

export async function health(db: Connection): Promise<Health> {
  const [row] = await db.rows(varying(sql`select ${now} as now, version() as version`));
  const settings = await db.rows(
    varying(raw(`show global variables where variable_name in ('${variables.join("', '")}')`)),
  );
  const values = new Map(
    settings.map((each) => [text(each.Variable_name).toLowerCase(), text(each.Value).toUpperCase()]),
  );
  return {
    now: Number(row?.now),
    warnings: [...warnings(text(row?.version), values, await isReplica(db))],
  };
}

function* warnings(version: string, values: ReadonlyMap<string, string>, replica: boolean): Iterable<string> {
  if (isTooOld(version))
    yield `The server is ${version}: MySQL 8.0 and MariaDB 10.6 are the oldest that are supported.`;
  if ((values.get("innodb_flush_log_at_trx_commit") ?? "1") !== "1")
    yield "innodb_flush_log_at_trx_commit is not 1: a crash of the server may forget claims, and their effects run twice.";
  if (values.get("log_bin") === "ON" && (values.get("sync_binlog") ?? "1") !== "1")
    yield "sync_binlog is not 1: after a crash of the server its replicas may lack claims, and a failover forgets them.";
  if (values.get("read_only") === "ON" || values.get("super_read_only") === "ON")
    yield "The server is read-only: claims can only be made on a primary.";
  if (replica) yield "The server is a replica of another: claims must be made on the primary alone.";
}

/** Of an account that may not ask this, nothing is said. */
async function isReplica(db: Connection): Promise<boolean> {
  try {
    return (await db.rows(varying(raw("show replica status")))).length > 0;
  } catch {
    return false;
  }
}

export function isTooOld(version: string): boolean {
  const [, major = 0, minor = 0] = (/^(\d+)\.(\d+)/.exec(version) ?? []).map(Number);
  const [floorMajor, floorMinor] = /mariadb/i.test(version) ? [10, 6] : [8, 0];
  return major < floorMajor || (major === floorMajor && minor < floorMinor);
}
