import { type MysqlClient, mayHook, type Promised, promisedOf } from "./driver.ts";
import { inTransaction } from "./errors.ts";
import { parameters, type Statement, withLiterals, withPlaceholders } from "./statement.ts";

export type Row = Readonly<Record<string, unknown>>;

export interface Connection {
  rows(statement: Statement): Promise<readonly Row[]>;
  /** The number of rows that matched. For an update, each of them also changed: every one of ours raises the version. */
  write(statement: Statement): Promise<number>;
  /** What the statement gave to `last_insert_id`; null when no row matched. */
  numbered(statement: Statement): Promise<number | null>;
}

export interface Database extends Connection {
  /** `work` must use the connection that it is given: a pool may have no other. */
  transaction<T>(work: (connection: Connection) => Promise<T>): Promise<T>;
}

/** What a pool may be set to otherwise. With these, rows come as objects. */
const asPlainRows = { rowsAsArray: false, nestTables: false, typeCast: true, namedPlaceholders: false } as const;

/** The same past a hook, which mysql2 asks unless the statement has one: that costs a call for each value, a tenth of a look-up. */
const pastHooks = { ...asPlainRows, typeCast: (_field: unknown, next: () => unknown): unknown => next() };
type Reading = typeof asPlainRows | typeof pastHooks;

/** @throws TwiceproofError `INVALID_ARGUMENT` */
export function databaseOf(client: MysqlClient): Database {
  const promised = promisedOf(client);
  const reading = mayHook(client) ? pastHooks : asPlainRows;
  return typeof promised.getConnection === "function" ? poolOf(promised, reading) : alone(promised, reading);
}

function connectionOf(promised: Promised, reading: Reading, inside: "autocommit" | "transaction"): Connection {
  async function run(statement: Statement): Promise<unknown> {
    const [answer] = statement.varies
      ? await promised.query({ ...reading, sql: withLiterals(statement), values: [] })
      : await promised.execute({ ...reading, sql: withPlaceholders(statement) }, parameters(statement));
    return answer;
  }

  async function written(statement: Statement): Promise<WriteAnswer> {
    const answer = (await run(statement)) as WriteAnswer;
    if (inside === "autocommit" && isInTransaction(answer.serverStatus)) throw inTransaction();
    return answer;
  }

  return {
    rows: async (statement) => (await run(statement)) as readonly Row[],
    write: async (statement) => Number((await written(statement)).affectedRows),
    async numbered(statement) {
      const { affectedRows, insertId } = await written(statement);
      return Number(affectedRows) === 0 ? null : Number(insertId);
    },
  };
}

/** Numbers are texts where a pool is set so. */
interface WriteAnswer {
  readonly affectedRows: unknown;
  readonly insertId: unknown;
  readonly serverStatus?: number;
}

/** SERVER_STATUS_IN_TRANS of the protocol's OK packet. */
function isInTransaction(serverStatus = 0): boolean {
  return (serverStatus & 1) !== 0;
}

async function transactionOn<T>(
  promised: Promised,
  reading: Reading,
  work: (connection: Connection) => Promise<T>,
): Promise<T> {
  await promised.query({ sql: "start transaction" });
  const answer = await work(connectionOf(promised, reading, "transaction"));
  await promised.query({ sql: "commit" });
  return answer;
}

function poolOf(promised: Promised, reading: Reading): Database {
  return {
    ...connectionOf(promised, reading, "autocommit"),
    async transaction(work) {
      const connection = await (promised as Required<Promised>).getConnection();
      try {
        const answer = await transactionOn(connection, reading, work);
        connection.release();
        return answer;
      } catch (error) {
        await connection.query({ sql: "rollback" }).then(
          () => connection.release(),
          () => connection.destroy(),
        );
        throw error;
      }
    },
  };
}

/**
 * One connection, one thing at a time: a statement between `start transaction` and `commit` would be part of it. Each is
 * preceded by a look at the connection's state, since `start transaction` would commit what the application has open.
 */
function alone(promised: Promised, reading: Reading): Database {
  const { rows, write, numbered } = connectionOf(promised, reading, "autocommit");
  let last: Promise<unknown> = Promise.resolve();

  function inTurn<T>(work: () => Promise<T>): Promise<T> {
    const checked = async (): Promise<T> => {
      const [state] = await promised.query({ sql: "do 0" });
      if (isInTransaction((state as WriteAnswer).serverStatus)) throw inTransaction();
      return work();
    };
    const mine = last.then(checked, checked);
    last = mine;
    return mine;
  }

  return {
    rows: (statement) => inTurn(() => rows(statement)),
    write: (statement) => inTurn(() => write(statement)),
    numbered: (statement) => inTurn(() => numbered(statement)),
    transaction: (work) =>
      inTurn(async () => {
        try {
          return await transactionOn(promised, reading, work);
        } catch (error) {
          // A connection that cannot roll back is broken, and the server rolls back when it is gone.
          await promised.query({ sql: "rollback" }).catch(() => undefined);
          throw error;
        }
      }),
  };
}
