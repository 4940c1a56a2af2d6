import { connection, type Parameter, type PostgresClient, type Row } from "./client.ts";
import {
  closed,
  isDoneByAnother,
  isMissing,
  schemaMissing,
  sqlState,
  standby,
  storeError,
  unusable,
} from "./errors.ts";
import type { Statement } from "./fragments.ts";
import { checkVersion, latest, migrations } from "./migrate.ts";
import { untilAnswered } from "./retry.ts";
import { quotedSchema } from "./schema.ts";
import { health, type Statements, statements } from "./sql.ts";

export interface Session {
  readonly sql: Statements;
  /** One statement, one transaction. Asked again after a serialization failure or a deadlock: it has changed nothing. */
  run(statement: Statement, parameters?: readonly Parameter[]): Promise<readonly Row[]>;
  migrate(): Promise<void>;
  close(): void;
}

export interface SessionOptions {
  readonly schema: string;
  readonly prepare: boolean | undefined;
}

/**
 * Before the first statement, once for each store, the schema's version is asked for: an older version of this package
 * must not write into a newer schema, and a claim that was made before the answer could not be taken back.
 */
export function session(client: PostgresClient, { schema: name, prepare }: SessionOptions): Session {
  if (typeof client?.query !== "function") throw unusable();
  const schema = quotedSchema(name);
  const sql = statements(schema);
  const { query } = connection(client, prepare);
  let checked: Promise<void> | undefined;
  let isClosed = false;

  async function ask(statement: Statement, parameters?: readonly Parameter[]): Promise<readonly Row[]> {
    if (isClosed) throw closed();
    try {
      return await untilAnswered(() => query(statement, parameters));
    } catch (error) {
      if (sqlState(error) === "25006" && (await isStandby())) throw standby(error);
      throw storeError(error);
    }
  }

  async function isStandby(): Promise<boolean> {
    try {
      return (await query(health))[0]?.standby === true;
    } catch {
      // The first error says enough.
      return false;
    }
  }

  /** 0 without the table. */
  async function version(): Promise<number> {
    try {
      return checkVersion(Number((await ask(sql.version))[0]?.version ?? 0));
    } catch (error) {
      if (isMissing(error)) return 0;
      throw error;
    }
  }

  async function check(): Promise<void> {
    if ((await version()) < latest) throw schemaMissing();
  }

  /** Each statement does nothing when its work is done, and says so in an error when that is being done at this moment. */
  async function migrate(): Promise<void> {
    for (const text of migrations(schema, await version(), await exists())) {
      try {
        await ask({ text });
      } catch (error) {
        if (!isDoneByAnother(error)) throw error;
        await ask({ text });
      }
    }
  }

  /** Not left to `create schema if not exists`: that needs the right to create schemas also when there is nothing to do. */
  async function exists(): Promise<boolean> {
    const rows = await ask({ text: "select from pg_namespace where nspname = $1::text" }, [name]);
    return rows.length > 0;
  }

  return {
    sql,
    async run(statement, parameters) {
      checked ??= check().catch((error: unknown) => {
        checked = undefined;
        throw error;
      });
      await checked;
      return ask(statement, parameters);
    },
    migrate,
    close() {
      isClosed = true;
    },
  };
}
