import type { Sql } from "postgres";
import type { PostgresClient } from "../../src/index.ts";

/** The shim of the README. */
export function fromPostgresJs(sql: Sql): PostgresClient {
  return { query: async (text, parameters) => ({ rows: await sql.unsafe(text, parameters as never[]) }) };
}
