import { goalsOf } from "./goals.ts";
import { measure } from "./measure.ts";
import { table } from "./report.ts";
import { mysqlSubject } from "./subject-mysql.ts";
import { postgresSubject } from "./subject-postgres.ts";
import { sqliteSubject } from "./subject-sqlite.ts";
import { bench } from "./task.ts";

const subjects = {
  sqlite: sqliteSubject,
  postgres: postgresSubject,
  mariadb: () => mysqlSubject("mariadb"),
  mysql: () => mysqlSubject("mysql"),
};

/** What it costs to claim and to settle effects, beside the same two statements by hand. */
export function benchStores(names: readonly string[]): Promise<void> {
  return bench({ name: "stores", subjects, measure, table, goalsOf }, names);
}
