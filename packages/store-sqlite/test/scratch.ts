import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ClaimRef, ClaimRequest, Store } from "@twiceproof/core/store";
import { claimId, randomId } from "@twiceproof/core/store";
import { onTestFinished } from "vitest";
import { type SqliteHandle, sqliteStore } from "../src/index.ts";

/** A folder of this test's own, gone with it. */
export function scratchFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "twiceproof-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

export function scratchFile(): string {
  return join(scratchFolder(), "app.db");
}

/** Closed when the test is over, before its folder goes. */
export function storeOf(source: string | URL | SqliteHandle): Store {
  const store = sqliteStore(source);
  onTestFinished(() => store.close());
  return store;
}

export function opened<T extends { close(): unknown }>(handle: T): T {
  onTestFinished(() => void handle.close());
  return handle;
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
