import type { ClaimRef, ClaimRequest, Store, TicketRequest } from "@twiceproof/core/store";
import { claimId, randomId } from "@twiceproof/core/store";
import { createDatabase } from "@twiceproof/test-servers";
import type { PoolOptions } from "mysql2";
import type { Connection, Pool } from "mysql2/promise";
import { onTestFinished } from "vitest";
import { mysqlStore } from "../../src/index.ts";
import { oneConnection, promisePool } from "./connect.ts";

/** A database of this test's own, gone with it. */
export async function scratchUrl(serverUrl: string): Promise<string> {
  const database = await createDatabase(serverUrl);
  onTestFinished(() => database.drop());
  return database.url;
}

export function poolOn(url: string, options: PoolOptions = {}, session?: string): Pool {
  const { client, end } = promisePool(url, options, session);
  onTestFinished(end);
  return client;
}

export async function connectionOn(url: string): Promise<Connection> {
  const { client, end } = await oneConnection(url);
  onTestFinished(end);
  return client;
}

/** Migrated, on a pool of its own. */
export async function storeOn(url: string, options: PoolOptions = {}, session?: string): Promise<Store> {
  const store = mysqlStore(poolOn(url, options, session));
  await store.migrate();
  return store;
}

export function effect(key: string, more: Partial<ClaimRequest> = {}): ClaimRequest {
  return request("effect", key, more);
}

export function lock(key: string, more: Partial<ClaimRequest> = {}): ClaimRequest {
  return request("lock", key, more);
}

function request(kind: "effect" | "lock", key: string, more: Partial<ClaimRequest>): ClaimRequest {
  return {
    id: claimId("test", kind, key),
    attemptId: randomId(),
    namespace: "test",
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
  };
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

export async function complete(store: Store, ref: ClaimRef, text = "42"): Promise<void> {
  const [answer] = await store.settle([{ ...ref, state: "completed", payload: { format: "json", text } }]);
  if (answer !== "settled") throw new Error(`expected to settle, was answered ${answer}`);
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

/** Until it holds, looked at again and again. */
async function until(holds: () => Promise<boolean>, what: string): Promise<void> {
  for (const start = performance.now(); !(await holds()); ) {
    if (performance.now() - start > 10_000) throw new Error(`waited in vain until ${what}`);
    // InnoDB renews what it tells of transactions only when nobody asked for a tenth of a second.
    await new Promise((resolve) => setTimeout(resolve, 120));
  }
}

/** The connections of this database whose statement waits for a row: only then does the other one's commit matter. */
export async function waiting(observer: Pick<Connection, "query">): Promise<readonly number[]> {
  // Not in one statement: MySQL then converts the text of all statements, and fails at the bytes in it.
  const [blocked] = await observer.query(
    "select trx_mysql_thread_id as id from information_schema.innodb_trx where trx_state = 'LOCK WAIT'",
  );
  const [here] = await observer.query("select id from information_schema.processlist where db = database()");
  const ids = new Set((here as { id: number }[]).map(({ id }) => id));
  return (blocked as { id: number }[]).map(({ id }) => id).filter((id) => ids.has(id));
}

export async function someWait(observer: Pick<Connection, "query">, count = 1): Promise<void> {
  await until(async () => (await waiting(observer)).length >= count, `${count} statements wait for a row`);
}
