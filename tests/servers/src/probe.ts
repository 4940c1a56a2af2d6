import { createConnection } from "mysql2/promise";
import { Client } from "pg";

export interface Identity {
  readonly version: string;
  /** Tells our server from a stranger that got hold of the port. */
  readonly dataDirectory: string;
}

export function isPostgres(url: string): boolean {
  return /^postgres(ql)?:/.test(url);
}

/** Connects once and asks the server who it is. */
export async function probe(url: string): Promise<Identity> {
  let rows: unknown[];
  if (isPostgres(url)) {
    rows = await query(
      url,
      `select current_setting('server_version') as version, current_setting('data_directory') as "dataDirectory"`,
    );
  } else {
    rows = await query(url, "select version() as version, @@datadir as dataDirectory");
  }
  return rows[0] as Identity;
}

/** Runs one statement on a connection of its own. */
export async function query(url: string, statement: string): Promise<unknown[]> {
  if (isPostgres(url)) {
    const client = new Client({ connectionString: url, connectionTimeoutMillis: 10_000 });
    client.on("error", () => undefined); // The query, or the end, rejects as well.
    await client.connect();
    try {
      return (await client.query(statement)).rows;
    } finally {
      await client.end();
    }
  }
  const connection = await createConnection({ uri: url, connectTimeout: 10_000 });
  try {
    const [rows] = await connection.query(statement);
    return Array.isArray(rows) ? rows : [];
  } finally {
    await connection.end();
  }
}
