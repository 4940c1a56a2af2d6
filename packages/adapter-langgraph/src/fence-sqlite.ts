import type { BaseCheckpointSaver } from "@langchain/langgraph";
import type { SaverFence, TransactionCheck } from "./fence.ts";
import { forwarding } from "./forwarding.ts";

type Work = (...args: never[]) => unknown;

/** The parts of better-sqlite3 that the saver uses, and a fence needs. */
interface Database {
  readonly inTransaction: boolean;
  prepare(sql: string): Statement;
  transaction(work: Work): Transaction;
}

/** Each of a transaction's variants has all of them. */
interface Transaction extends Work {
  readonly immediate: Transaction;
}

interface Statement {
  get(...values: unknown[]): unknown;
  run(...values: unknown[]): unknown;
}

/**
 * For a SqliteSaver: it writes by `transaction` and by single statements, both at once and on one handle. Undefined for
 * others. Tests of each supported version hold it to that.
 */
export function sqliteFence(saver: BaseCheckpointSaver): SaverFence | undefined {
  const { db } = saver as { readonly db?: Partial<Database> };
  if (typeof db?.prepare !== "function" || typeof db.transaction !== "function") return undefined;
  const handle = db as Database;
  return {
    async finds({ text, values }) {
      try {
        return handle.prepare(text).get(...values) !== undefined;
      } catch (error) {
        // No such table, or a statement of another database's.
        if ((error as { readonly code?: unknown }).code === "SQLITE_ERROR") return false;
        throw error;
      }
    },
    view(check) {
      // It makes its tables when it is first used, and notes that on itself.
      (saver as { readonly setup?: () => unknown }).setup?.();
      return Object.create(saver, { db: { value: checkedDatabase(handle, check) } });
    },
  };
}

function checkedDatabase(db: Database, { statement, take }: TransactionCheck): Database {
  /** The write lock comes first: a takeover then waits for this transaction, or is seen by it. */
  function checked(work: Work): Transaction {
    const { immediate } = db.transaction((...args: never[]) => {
      take(db.prepare(statement.text).get(...statement.values) !== undefined);
      return work(...args);
    });
    return immediate;
  }

  return forwarding(db, {
    transaction: checked,
    prepare(sql) {
      const prepared = db.prepare(sql);
      const run = (...values: unknown[]): unknown => prepared.run(...values);
      return forwarding(prepared, {
        run: (...values) => (db.inTransaction ? run(...values) : checked(run)(...(values as never[]))),
      });
    },
  });
}
