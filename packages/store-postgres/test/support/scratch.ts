import type { ClaimRef, ClaimRequest, Store, TicketRequest } from "@twiceproof/core/store";
import { claimId, randomId } from "@twiceproof/core/store";
import { createDatabase, type Database } from "@twiceproof/test-servers";
import type { SharedServer } from "@twiceproof/test-servers/vitest";
import { Client, type ClientConfig, Pool, type PoolConfig } from "pg";
import { afterAll, beforeAll, beforeEach, onTestFinished } from "vitest";
import { type PostgresClient, type PostgresStoreOptions, postgresStore } from "../../src/index.ts";

export interface Scratch {
  readonly url: string;
  /** Another one for each test. */
  readonly schema: string;
  /** Ended with the test. */
  pool(config?: PoolConfig): Pool;
  client(config?: ClientConfig): Promise<Client>;
  store(client?: PostgresClient, options?: PostgresStoreOptions): Store;
  migrated(client?: PostgresClient, options?: PostgresStoreOptions): Promise<Store>;
  /** From outside of all stores. `$s` stands for the schema. */
  query(text: string, parameters?: readonly unknown[]): Promise<readonly Record<string, unknown>[]>;
}

/** A database of this file's own. */
export function scratch(server: SharedServer): Scratch {
  let database: Database;
  let outside: Pool;
  let number = 0;
  beforeAll(async () => {
    database = await createDatabase(server.url);
    outside = quietPool({ connectionString: database.url });
  });
  afterAll(async () => {
    await outside.end();
    await database.drop();
  });
  beforeEach(() => {
    number++;
  });

  const place: Scratch = {
    get url() {
      return database.url;
    },
    get schema() {
      return `test_${number}`;
    },
    pool(config = {}) {
      const pool = quietPool({ connectionString: database.url, ...config });
      onTestFinished(async () => {
        if (!pool.ended) await pool.end();
      });
      return pool;
    },
    async client(config = {}) {
      const client = new Client({ connectionString: database.url, ...config });
      client.on("error", () => undefined);
      onTestFinished(() => client.end());
      await client.connect();
      return client;
    },
    store: (client, options) => postgresStore(client ?? place.pool(), { schema: place.schema, ...options }),
    async migrated(client, options) {
      const store = place.store(client, options);
      await store.migrate();
      return store;
    },
    async query(text, parameters = []) {
      return (await outside.query(text.replaceAll("$s", place.schema), [...parameters])).rows;
    },
  };
  return place;
}

/** A connection may be ended while it is idle, or still says goodbye when its database is dropped. */
export function quietPool(config: PoolConfig): Pool {
  const pool = new Pool(config);
  pool.on("error", () => undefined);
  pool.on("connect", (client) => client.on("error", () => undefined));
  return pool;
}

/** A client of which the store knows nothing but `query`. */
export function bare(client: Client): PostgresClient {
  return { query: (text, parameters) => client.query(text, parameters) };
}

/** Resolves once this connection waits for a lock. */
export async function waiting(place: Scratch, client: Client): Promise<void> {
  const { processID } = client as unknown as { processID: number };
  await until(async () => {
    const [row] = await place.query("select cardinality(pg_blocking_pids($1)) > 0 as blocked", [processID]);
    return row?.blocked === true;
  });
}

export async function until(condition: () => Promise<boolean>): Promise<void> {
  for (const start = performance.now(); !(await condition()); )
    if (performance.now() - start > 10_000) throw new Error("it did not come to that within ten seconds");
}

export function effect(key: string, more: Partial<ClaimRequest> = {}): ClaimRequest {
  return {
    id: claimId("test", "effect", key),
    attemptId: randomId(),
    namespace: "test",
    kind: "effect",
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
  };
}

export function lock(key: string, more: Partial<ClaimRequest> = {}): ClaimRequest {
  return effect(key, { id: claimId("test", "lock", key), kind: "lock", name: "run", ...more });
}

/** A wait for the lock of this key. */
export function ticket(key: string, more: Partial<TicketRequest> = {}): TicketRequest {
  const { id } = lock(key);
  return { id, ticketId: randomId(), runId: null, holder: "waiter-1", leaseMs: 60_000, maxQueue: 9, ...more };
}

export async function win(store: Store, request: ClaimRequest): Promise<ClaimRef> {
  const [result] = await store.claim([request]);
  if (result?.answer !== "won") throw new Error(`expected to win, was answered ${result?.answer}`);
  return { id: request.id, attemptId: request.attemptId, token: result.token };
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
