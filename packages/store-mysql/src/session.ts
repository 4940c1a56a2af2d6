import type { Database } from "./client.ts";
import { closed, inTransaction, schemaMissing } from "./errors.ts";
import { checkSchema } from "./migrate.ts";
import type { Tables } from "./prefix.ts";
import { patiently } from "./retry.ts";
import { raw, varying } from "./statement.ts";

export interface Session {
  /** Once the schema was found to be there; `work` may be run again, with what it did before undone or recognisable. */
  ask<T>(work: () => Promise<T>): Promise<T>;
  /** Without looking for the schema. */
  askUnprepared<T>(work: () => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

/** Looks at the schema with the first call, and again with the next one when that failed. */
export function session(db: Database, tables: Tables): Session {
  let ready: Promise<void> | undefined;
  let isClosed = false;

  async function prepare(): Promise<void> {
    const [row] = await db.rows(varying(raw("select @@session.autocommit as autocommit")));
    if (Number(row?.autocommit) !== 1) throw inTransaction();
    if (!(await checkSchema(db, tables))) throw schemaMissing();
  }

  function askUnprepared<T>(work: () => Promise<T>): Promise<T> {
    return patiently(() => {
      if (isClosed) throw closed();
      return work();
    });
  }

  return {
    askUnprepared,
    ask: (work) =>
      askUnprepared(async () => {
        ready ??= prepare();
        try {
          await ready;
        } catch (error) {
          ready = undefined;
          throw error;
        }
        return work();
      }),
    async close() {
      isClosed = true;
    },
  };
}
