import { randomBytes } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { type ClaimRecord, createTwiceproof, type Twiceproof, type TwiceproofOptions } from "@twiceproof/core";
import type { ClaimRequest, Store } from "@twiceproof/core/store";
import { type ClaimSpace, claimId, randomId } from "@twiceproof/core/store";
import { mysqlStore } from "@twiceproof/store-mysql";
import { postgresStore } from "@twiceproof/store-postgres";
import { createDatabase, type ServerName, startProxy, type TcpProxy } from "@twiceproof/test-servers";
import { createConnection, createPool } from "mysql2/promise";
import { Client, Pool } from "pg";
import { afterAll, vi } from "vitest";

/** Machines with two busy cores are slow: bounds are wide, and nothing waits for them to pass. */
vi.setConfig({ testTimeout: 90_000, hookTimeout: 180_000, maxConcurrency: 12 });
const withinMs = 40_000;

export const everywhere: readonly ServerName[] = ["postgres", "postgres-distribution", "mariadb", "mysql"];
export const newest: readonly ServerName[] = ["postgres", "mariadb", "mysql"];

export type Level = "read committed" | "repeatable read" | "serializable";
export const levels: readonly Level[] = ["read committed", "repeatable read", "serializable"];

export interface Connecting {
  readonly through?: TcpProxy;
  readonly connections?: number;
  readonly level?: Level;
  /** Of each new session: `set session …` of MySQL, `-c …` of PostgreSQL. */
  readonly session?: string;
  /** In place of the superuser. */
  readonly user?: { readonly name: string; readonly password: string };
  readonly url?: string;
}

/** A store on a pool of its own. */
export interface Source {
  readonly store: Store;
  /** What the server refused, by the SQLSTATE or the number that it said. */
  readonly refusals: unknown[];
  /** On whichever connection is free. */
  query(text: string): Promise<Rows>;
}

type Rows = readonly Readonly<Record<string, unknown>>[];

/** Somebody else's connection. */
export interface Other {
  query(text: string): Promise<Rows>;
  /** As the server knows it. */
  readonly id: number;
  end(): Promise<void>;
}

/** A test's own namespace, in a database that the tests of its file share, or in one of its own. */
export interface Scene {
  readonly namespace: string;
  readonly url: string;
  readonly isPostgres: boolean;
  readonly claims: string;
  /** As a condition for SQL. */
  is(column: "id", id: string): string;
  connect(options?: Connecting): Source;
  tp(options?: Connecting & Partial<TwiceproofOptions>): Twiceproof;
  proxy(): Promise<TcpProxy>;
  other(): Promise<Other>;
  /** Straight at the server, and migrated. */
  readonly store: Store;
  record(key: string, space?: ClaimSpace): Promise<ClaimRecord | null>;
  /** A claim of an effect, or of a thread's lock. */
  request(kind: "effect" | "lock", key: string, more?: Partial<ClaimRequest>): ClaimRequest;
}

type OnEnd = { readonly onTestFinished: (run: () => Promise<void>) => void };

const isPostgresUrl = (url: string): boolean => url.startsWith("postgres");

/** To make one, and its tables, takes longer than most tests. Dropped when the file is through. */
const shared = new Map<string, ReturnType<typeof createDatabase>>();
afterAll(async () => {
  for (const database of shared.values()) await (await database).drop();
});

async function databaseOn(
  serverUrl: string,
  { onTestFinished }: OnEnd,
  whose: "the file's" | "its own",
): Promise<string> {
  if (whose === "the file's") {
    const database = shared.get(serverUrl) ?? createDatabase(serverUrl);
    shared.set(serverUrl, database);
    return (await database).url;
  }
  const database = await createDatabase(serverUrl);
  onTestFinished(() => database.drop());
  return database.url;
}

export async function sceneOn(
  server: { readonly url: string },
  context: OnEnd,
  whose: "the file's" | "its own" = "the file's",
): Promise<Scene> {
  const { onTestFinished } = context;
  const url = await databaseOn(server.url, context, whose);
  const isPostgres = isPostgresUrl(url);
  const namespace = `test ${randomId()}`;

  function connect(options: Connecting = {}): Source {
    const target = addressOf(options.url ?? url, options);
    const { end, ...source } = isPostgres ? postgresSource(target, options) : mysqlSource(target, options);
    onTestFinished(async () => {
      // What waits for an answer that was swallowed would keep the pool from ending.
      options.through?.pass();
      options.through?.cut();
      await end();
    });
    return source;
  }

  const { store } = connect();
  await store.migrate();
  return {
    namespace,
    url,
    isPostgres,
    store,
    connect,
    claims: isPostgres ? "twiceproof.claims" : "twiceproof_claims",
    is: (column, id) => `${column} = ${isPostgres ? `decode('${id}', 'hex')` : `x'${id}'`}`,
    tp(options = {}) {
      const { through, connections, level, session, user, url: other, store: given, ...rest } = options;
      const connecting = { through, connections, level, session, user, url: other };
      const tp = createTwiceproof({
        store: given ?? connect(defined(connecting)).store,
        storeTimeoutMs: 15_000,
        namespace,
        ...rest,
      });
      onTestFinished(() => tp.close({ graceMs: 0 }));
      return tp;
    },
    async proxy() {
      const proxy = await startProxy(url);
      onTestFinished(() => proxy.close());
      return proxy;
    },
    async other() {
      const other = await connectAlone(url);
      onTestFinished(other.end);
      return other;
    },
    request: (kind, key, more) => ({
      id: claimId(namespace, kind === "effect" ? kind : "thread", key),
      attemptId: randomId(),
      namespace,
      kind,
      key,
      name: "charge",
      scope: null,
      turn: null,
      runId: null,
      fingerprint: "1:same",
      holder: "worker-1",
      leaseMs: 60_000,
      seen: null,
      fence: null,
      ...more,
    }),
    async record(key, space = "effect") {
      return (await store.get([claimId(namespace, space, key)]))[0] ?? null;
    },
  };
}

function defined(options: { readonly [Name in keyof Connecting]: Connecting[Name] | undefined }): Connecting {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
}

function addressOf(target: string, { through, user }: Connecting): string {
  const url = new URL(through?.url(target) ?? target);
  if (user !== undefined) {
    url.username = user.name;
    url.password = user.password;
  }
  return url.href;
}

type Ending = Source & { end(): Promise<void> };

function postgresSource(connectionString: string, { connections = 4, level, session = "" }: Connecting): Ending {
  const options =
    level === undefined ? session : `-c default_transaction_isolation=${level.replace(" ", "\\ ")} ${session}`;
  const pool = new Pool({ connectionString, max: connections, options });
  // Connections end here when a test cuts them.
  pool.on("error", () => undefined);
  pool.on("connect", (client) => client.on("error", () => undefined));
  const refusals: unknown[] = [];
  noting(pool, ["query"], "code", refusals);
  return {
    store: postgresStore(pool),
    refusals,
    query: async (text) => (await pool.query(text)).rows,
    end: () => pool.end(),
  };
}

function mysqlSource(uri: string, { connections = 4, level, session }: Connecting): Ending {
  const pool = createPool({ uri, connectionLimit: connections });
  pool.pool.on("connection", (connection) => {
    const ignore = (): undefined => undefined;
    if (level !== undefined) connection.query(`set session transaction isolation level ${level}`, ignore);
    if (session !== undefined) connection.query(`set session ${session}`, ignore);
  });
  const refusals: unknown[] = [];
  noting(pool, ["query", "execute"], "errno", refusals);
  const { getConnection } = pool;
  pool.getConnection = async () => {
    const connection = await getConnection.call(pool);
    noting(connection, ["query", "execute"], "errno", refusals);
    return connection;
  };
  return {
    store: mysqlStore(pool),
    refusals,
    query: async (text) => rowsOf(await pool.query(text)),
    // A connection that was cut says so here as well.
    end: () => pool.end().catch(() => undefined),
  };
}

function rowsOf([rows]: readonly [unknown, ...unknown[]]): Rows {
  return Array.isArray(rows) ? (rows as Rows) : [];
}

/** Writes down the codes with which these methods reject. */
function noting(target: object, names: readonly string[], code: string, into: unknown[]): void {
  const methods = target as Record<string, (...parameters: unknown[]) => unknown>;
  for (const name of names) {
    const method = methods[name] as (...parameters: unknown[]) => unknown;
    methods[name] = (...parameters) => {
      const answer = method.apply(target, parameters);
      if (answer instanceof Promise) answer.catch((error: Record<string, unknown>) => into.push(error[code]));
      return answer;
    };
  }
}

export async function connectAlone(url: string): Promise<Other> {
  if (isPostgresUrl(url)) {
    const client = new Client(url);
    client.on("error", () => undefined);
    await client.connect();
    const { processID } = client as unknown as { processID: number };
    return { id: processID, query: async (text) => (await client.query(text)).rows, end: () => client.end() };
  }
  const connection = await createConnection({ uri: url, multipleStatements: true });
  connection.on("error", () => undefined);
  return {
    id: connection.threadId,
    query: async (text) => rowsOf(await connection.query(text)),
    end: () => connection.end().catch(() => undefined),
  };
}

/** Counts effects; the product knows nothing of it. */
export interface World {
  /** An effect's body; no two executions return the same. */
  act(key: string): { readonly key: string; readonly nonce: string };
  acts(key: string): number;
  readonly all: ReadonlyMap<string, number>;
}

export function newWorld(): World {
  const all = new Map<string, number>();
  return {
    act(key) {
      all.set(key, (all.get(key) ?? 0) + 1);
      return { key, nonce: randomBytes(8).toString("hex") };
    },
    acts: (key) => all.get(key) ?? 0,
    all,
  };
}

export async function until(what: string, check: () => boolean | Promise<boolean>): Promise<void> {
  const start = performance.now();
  while (!(await check())) {
    if (performance.now() - start > withinMs) throw new Error(`waited ${withinMs} ms in vain for ${what}`);
    await pause(20);
  }
}

/** Until this many connections of the scene's own database wait for somebody's lock. */
export async function someWait(scene: Scene, outside: Other, count = 1): Promise<void> {
  const waiting = scene.isPostgres ? waitingInPostgres : waitingInInnodb;
  await until(`${count} waiting statements`, async () => (await waiting(outside)) >= count);
}

async function waitingInPostgres(outside: Other): Promise<number> {
  const [row] = await outside.query(
    `select count(*) as count from pg_stat_activity
     where datname = current_database() and cardinality(pg_blocking_pids(pid)) > 0`,
  );
  return Number(row?.count);
}

/** From the monitor's report: the table of transactions grows old while anybody looks at it ten times a second. */
async function waitingInInnodb(outside: Other): Promise<number> {
  const [report] = await outside.query("show engine innodb status");
  // What comes before the first is of the past.
  const [, ...transactions] = String(report?.Status).split("---TRANSACTION");
  const waiting = transactions.filter((text) => text.includes("LOCK WAIT"));
  const ids = new Set(waiting.map((text) => Number(/thread id (\d+)/.exec(text)?.[1])));
  const here = await outside.query("select id from information_schema.processlist where db = database()");
  return here.filter(({ id, ID }) => ids.has(Number(id ?? ID))).length;
}

/** Cuts the connection once, at the nth piece of a request from now on, or at its answer. */
export function cutAt(proxy: TcpProxy, nth: number, at: "request" | "answer"): { readonly done: () => boolean } {
  let seen = 0;
  const hook = at === "request" ? proxy.onRequest : proxy.onAnswer;
  const remove = hook("", (connection) => {
    if (++seen !== nth) return;
    remove();
    connection.cut();
  });
  return {
    done() {
      remove();
      return seen >= nth;
    },
  };
}

/** What a promise rejected with; fails when it did not. */
export async function rejection(promise: Promise<unknown>): Promise<unknown> {
  const nothing = Symbol();
  const reason = await promise.then(
    () => nothing,
    (error: unknown) => error,
  );
  if (reason === nothing) throw new Error("expected a rejection");
  return reason;
}

export function shuffled<T>(items: readonly T[]): readonly T[] {
  return items
    .map((item) => [Math.random(), item] as const)
    .sort(([a], [b]) => a - b)
    .map(([, item]) => item);
}

export const range = (count: number): readonly number[] => Array.from({ length: count }, (_, index) => index);
