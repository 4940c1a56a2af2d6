import { openTransaction } from "./errors.ts";
import type { Statement } from "./fragments.ts";

/**
 * What the store needs of a client: a `Pool` or `Client` of pg, Neon's, Drizzle's `$client` and PGlite have it. Statements
 * have `$1`, and parameters are strings, numbers, booleans and null.
 */
export interface PostgresClient {
  query(text: string, parameters: unknown[]): Promise<{ readonly rows: readonly unknown[] }>;
}

export type Row = Readonly<Record<string, unknown>>;
export type Parameter = string | number | boolean | null;

/** What pg's own clients have beyond that. */
interface PgClient {
  query(config: {
    name: string;
    text: string;
    values: readonly Parameter[];
  }): Promise<{ readonly rows: readonly unknown[] }>;
  getTransactionStatus?(): string | null;
}

export interface Connection {
  query(statement: Statement, parameters?: readonly Parameter[]): Promise<readonly Row[]>;
}

/** The protocol's prepared statements are lost or doubled behind a pooler that does not know of them, or outlive a migration. */
const unprepared: ReadonlySet<unknown> = new Set(["26000", "42P05", "0A000"]);

/**
 * `prepare`: statements by name, which pg prepares once for each connection. Three SQLSTATEs say that it does not
 * work here, all before anything was executed: from then on it goes without, for good.
 */
export function connection(client: PostgresClient, prepare: boolean | undefined): Connection {
  let prepared = prepare ?? isPgClient(client);

  async function send({ text, name }: Statement, values: readonly Parameter[]): Promise<readonly unknown[]> {
    if (prepared && name !== undefined) {
      try {
        return (await (client as unknown as PgClient).query({ name, text, values })).rows;
      } catch (error) {
        if (!unprepared.has((error as { code?: unknown } | null)?.code)) throw error;
        prepared = false;
      }
    }
    return (await client.query(text, [...values])).rows;
  }

  async function query(statement: Statement, parameters: readonly Parameter[] = []): Promise<readonly Row[]> {
    refuseTransaction(client);
    const rows = await send(statement, parameters);
    // Queued behind a `begin` of the application's: what was answered may yet be rolled back.
    refuseTransaction(client);
    return rows as readonly Row[];
  }

  return { query: (statement, parameters) => inTurn(client, () => query(statement, parameters)) };
}

/** A single connection of pg, which from pg 9 on takes one query at a time. */
function isSingle(client: object): boolean {
  return "connectionParameters" in client;
}

/** Of all stores on one connection. */
const turns = new WeakMap<object, Promise<unknown>>();

function inTurn<T>(client: object, ask: () => Promise<T>): Promise<T> {
  if (!isSingle(client)) return ask();
  const mine = (turns.get(client) ?? Promise.resolve()).then(ask);
  turns.set(
    client,
    mine.catch(() => undefined),
  );
  return mine;
}

/** A `Pool` or a `Client` of pg, or what is built on them. */
function isPgClient(client: object): boolean {
  return isSingle(client) || ("Client" in client && "totalCount" in client);
}

/** Pg's clients know since 8.18 in what state the server said it was: T or E is inside a transaction. */
function refuseTransaction(client: object): void {
  const status = (client as Partial<PgClient>).getTransactionStatus?.();
  if (status === "T" || status === "E") throw openTransaction();
}
