import { TwiceproofError } from "@twiceproof/core/store";

/** A pool or a connection of `mysql2`, with callbacks or with promises (`mysql2/promise`). */
export interface MysqlClient {
  query(...parameters: never[]): unknown;
  execute(...parameters: never[]): unknown;
}

/** The part of `mysql2/promise` that is used. */
export interface Promised {
  query(options: object): Promise<readonly [unknown, unknown?]>;
  execute(options: object, values: readonly unknown[]): Promise<readonly [unknown, unknown?]>;
  getConnection?(): Promise<Promised & Held>;
}

interface Held {
  release(): void;
  destroy(): void;
}

/** The same part of `mysql2`. */
interface Calling {
  query(options: object, done: Done): void;
  execute(options: object, values: readonly unknown[], done: Done): void;
  getConnection?(done: (error: unknown, connection: Calling & Held) => void): void;
  promise(): Promised;
}

type Done = (error: unknown, answer: unknown) => void;

/** @throws TwiceproofError `INVALID_ARGUMENT` */
export function promisedOf(client: MysqlClient): Promised {
  if (typeof client?.query !== "function" || typeof client.execute !== "function")
    throw new TwiceproofError("INVALID_ARGUMENT", "Give a pool or a connection of mysql2.");
  if (isCalling(client)) return promising(client);
  const promised = client as Promised;
  const { pool, connection } = client as { pool?: unknown; connection?: unknown };
  const inner = pool ?? connection;
  return isCalling(inner) && isAsMade(promised, inner.promise()) ? promising(inner) : promised;
}

interface Settings {
  readonly typeCast?: unknown;
  readonly connectionConfig?: { readonly typeCast?: unknown };
}

/** Whether the application's `typeCast` may see what is read: also when the client is none that is known. */
export function mayHook(client: MysqlClient): boolean {
  const { pool, connection } = client as { pool?: unknown; connection?: unknown };
  const { config } = (pool ?? connection ?? client) as { config?: Settings };
  return config === undefined || typeof (config.connectionConfig ?? config).typeCast === "function";
}

function isCalling(client: unknown): client is Calling {
  return typeof (client as Partial<Calling> | undefined)?.promise === "function";
}

/** What the application has wrapped or replaced is to be called as that. */
function isAsMade(client: Promised, made: Promised): boolean {
  return (["query", "execute", "getConnection"] as const).every((name) => client[name] === made[name]);
}

/** The promises of `mysql2` note a stack for every call: with them a statement took the client a quarter more. */
function promising(client: Calling): Promised {
  const { getConnection } = client;
  return {
    query: (options) =>
      new Promise((resolve, reject) => {
        client.query(options, (error, answer) => (error ? reject(error) : resolve([answer])));
      }),
    execute: (options, values) =>
      new Promise((resolve, reject) => {
        client.execute(options, values, (error, answer) => (error ? reject(error) : resolve([answer])));
      }),
    ...(typeof getConnection === "function" && {
      getConnection: () =>
        new Promise((resolve, reject) => {
          getConnection.call(client, (error, connection) => (error ? reject(error) : resolve(heldBy(connection))));
        }),
    }),
  };
}

function heldBy(connection: Calling & Held): Promised & Held {
  return {
    ...promising(connection),
    release: () => connection.release(),
    destroy: () => connection.destroy(),
  };
}
