import { type Database, immediately, type SqliteHandle } from "./database.ts";
import { closed } from "./errors.ts";
import { migrate } from "./migrate.ts";
import { type Connection, checked, connect } from "./open.ts";
import { patience } from "./retry.ts";

export interface Session {
  /** Outside of any transaction: takes no lock that a writer could be in the way of. */
  read<T>(work: (db: Database) => T): Promise<T>;
  /** One statement, a transaction of its own where the handle tells of others: half the cost of `begin` and `commit`. */
  single<T>(work: (db: Database) => T): Promise<T>;
  /** In one transaction. `work` may be run again: nothing of a run that failed remains. */
  write<T>(work: (db: Database) => T): Promise<T>;
  close(): Promise<void>;
}

/** Opens and migrates with the first call, and again with the next one when that failed. */
export function session(source: string | URL | SqliteHandle): Session {
  const given = checked(source);
  const patient = patience();
  let opening: Promise<Connection> | undefined;
  let isClosed = false;

  async function open(): Promise<Connection> {
    const connection = await connect(given);
    try {
      migrate(connection.db);
      return connection;
    } catch (error) {
      connection.release();
      throw error;
    }
  }

  async function use<T>(work: (db: Database) => T, writes = false): Promise<T> {
    if (isClosed) throw closed();
    opening ??= open().catch((error: unknown) => {
      opening = undefined;
      throw error;
    });
    const { db, checkFile } = await opening;
    if (isClosed) throw closed();
    if (writes) checkFile();
    db.refuseInTransaction();
    return work(db);
  }

  return {
    read: (work) => patient.attempt(() => use(work)),
    single: (work) =>
      patient.inTurn(() => use((db) => (db.tellsTransactions ? work(db) : immediately(db, () => work(db))), true)),
    write: (work) => patient.inTurn(() => use((db) => immediately(db, () => work(db)), true)),
    async close() {
      if (isClosed) return;
      isClosed = true;
      // An opening that failed has released what it had.
      const connection = await opening?.catch(() => undefined);
      connection?.release();
    },
  };
}
