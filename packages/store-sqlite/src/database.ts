import { busyInTransaction } from "./errors.ts";

/** What the store needs of a handle: a `Database` of better-sqlite3 and a `DatabaseSync` of node:sqlite have it. */
export interface SqliteHandle {
  exec(sql: string): unknown;
  prepare(sql: string): object;
}

interface Statement {
  all(...parameters: readonly Parameters[]): readonly Row[];
  run(...parameters: readonly Parameters[]): { readonly changes: number | bigint };
}

export type Row = Readonly<Record<string, unknown>>;
export type Parameters = Readonly<Record<string, string | number | null>>;

export interface Database {
  exec(sql: string): void;
  /** For statements that return rows, and no others: the drivers differ there. */
  all(sql: string, parameters?: Parameters): readonly Row[];
  /** How many rows it changed. */
  run(sql: string, parameters: Parameters): number;
  /** Whether the handle says that the user's own transaction is open. One that does not says it at `begin`. */
  readonly tellsTransactions: boolean;
  /** @throws an error that counts as busy, when the user's own transaction is open on this handle. */
  refuseInTransaction(): void;
}

/** On `globalThis`, so that a module that is loaded again prepares no statement of the same handle again. */
const statementsKey = Symbol.for("twiceproof.store-sqlite.statements/1");
const globals = globalThis as { [statementsKey]?: WeakMap<SqliteHandle, Map<string, Statement>> };

export function database(handle: SqliteHandle): Database {
  globals[statementsKey] ??= new WeakMap();
  const statements: Map<string, Statement> = globals[statementsKey].get(handle) ?? new Map();
  globals[statementsKey].set(handle, statements);

  function prepared(sql: string): Statement {
    const known = statements.get(sql);
    if (known !== undefined) return known;
    const statement = handle.prepare(sql) as Statement;
    statements.set(sql, statement);
    return statement;
  }

  return {
    exec: (sql) => void handle.exec(sql),
    all: (sql, parameters) => (parameters ? prepared(sql).all(parameters) : prepared(sql).all()),
    run: (sql, parameters) => Number(prepared(sql).run(parameters).changes),
    tellsTransactions: typeof transactionOf(handle) === "boolean",
    refuseInTransaction() {
      if (transactionOf(handle) === true) throw busyInTransaction();
    },
  };
}

/** The first is better-sqlite3's name, the second node:sqlite's. */
function transactionOf(handle: SqliteHandle): unknown {
  const { inTransaction, isTransaction } = handle as { inTransaction?: unknown; isTransaction?: unknown };
  return inTransaction ?? isTransaction;
}

/**
 * One transaction that takes the write lock at once: a deferred one is refused when it comes to write, whatever the
 * busy timeout. `work` is synchronous, so nothing of the user's gets in between on the same handle.
 */
export function immediately<T>(db: Database, work: () => T): T {
  db.exec("begin immediate");
  try {
    const answer = work();
    db.exec("commit");
    return answer;
  } catch (error) {
    try {
      db.exec("rollback");
    } catch {
      // SQLite has rolled back by itself, as it does when the disk is full.
    }
    throw error;
  }
}
