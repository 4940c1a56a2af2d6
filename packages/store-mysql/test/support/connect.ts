import { type Pool as CallbackPool, createPool as createCallbackPool, type PoolOptions } from "mysql2";
import { type Connection, createConnection, createPool, type Pool } from "mysql2/promise";
import type { MysqlClient } from "../../src/index.ts";

/** A way of reaching a database: what the application gives the store, and how it ends it. */
export interface Source {
  readonly client: MysqlClient;
  end(): Promise<void>;
}

export function promisePool(uri: string, options: PoolOptions = {}, session?: string): Source & { client: Pool } {
  const client = createPool({ uri, connectionLimit: 4, ...options });
  // Queued on the new connection before anything else.
  if (session !== undefined)
    client.pool.on("connection", (connection) => void connection.query(`set session ${session}`));
  return { client, end: () => client.end() };
}

export function callbackPool(
  uri: string,
  options: PoolOptions = {},
  session?: string,
): Source & { client: CallbackPool } {
  const client = createCallbackPool({ uri, connectionLimit: 4, ...options });
  if (session !== undefined) client.on("connection", (connection) => void connection.query(`set session ${session}`));
  return { client, end: () => client.promise().end() };
}

export async function oneConnection(uri: string): Promise<Source & { client: Connection }> {
  const client = await createConnection(uri);
  return { client, end: () => client.end() };
}

/** Everything that mysql2 lets a pool do to what it sends and returns. */
export const oddOptions: PoolOptions = {
  rowsAsArray: true,
  nestTables: true,
  dateStrings: true,
  supportBigNumbers: true,
  bigNumberStrings: true,
  decimalNumbers: true,
  namedPlaceholders: true,
  multipleStatements: true,
  jsonStrings: true,
  stringifyObjects: true,
  timezone: "+05:30",
  charset: "LATIN1_SWEDISH_CI",
  flags: ["-FOUND_ROWS"],
  disableEval: true,
  typeCast: () => "not what the row says",
  queryFormat: (text: string) => text.replaceAll(/:[a-z]\w*/g, "null"),
};

/** Of a session: quotes that are no quotes, backslashes that are no escapes, text that is cut, another day. */
export const oddSession =
  "sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT,IGNORE_SPACE', time_zone = '-11:30'";
