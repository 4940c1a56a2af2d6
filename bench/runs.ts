import { measureLocks } from "./lock-measure.ts";
import { mysqlLocks } from "./lock-mysql.ts";
import { postgresLocks } from "./lock-postgres.ts";
import { lockGoalsOf, lockTable } from "./lock-report.ts";
import { sqliteLocks } from "./lock-sqlite.ts";
import { bench } from "./task.ts";

const subjects = {
  sqlite: sqliteLocks,
  postgres: postgresLocks,
  mariadb: () => mysqlLocks("mariadb"),
  mysql: () => mysqlLocks("mysql"),
};

/** What it costs to have a thread to oneself, and how long those who wait for one are kept. */
export function benchRuns(names: readonly string[]): Promise<void> {
  return bench({ name: "runs", subjects, measure: measureLocks, table: lockTable, goalsOf: lockGoalsOf }, names);
}
