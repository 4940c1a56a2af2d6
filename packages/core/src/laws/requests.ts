import assert from "node:assert/strict";
import { claimId, randomId } from "../id.ts";
import type {
  ClaimKind,
  ClaimRecord,
  ClaimRef,
  ClaimRequest,
  ClaimResult,
  Decision,
  DoubtRef,
  Payload,
  Renewed,
  Resolved,
  Settled,
  SettledState,
  Store,
} from "../store.ts";
import type { StoreHarness } from "./harness.ts";

/** Longer than any law takes: only `expireLeases` ends it. */
export const leaseMs = 600_000;
export const settledStates: readonly SettledState[] = ["completed", "failed", "released"];
export const receipt: Payload = { format: "json", text: '{"charge":"ch_1"}' };
export const reason: Payload = { format: "json", text: '"card declined"' };

/** Two connections, and a namespace that nobody else uses. */
export interface Scene {
  readonly store: Store;
  readonly other: Store;
  readonly namespace: string;
  effect(key?: string, more?: Partial<ClaimRequest>): ClaimRequest;
  lock(key?: string, more?: Partial<ClaimRequest>): ClaimRequest;
}

export async function scene(harness: StoreHarness): Promise<Scene> {
  const namespace = `law-${randomId()}`;
  return {
    store: await harness.connect(),
    other: await harness.connect(),
    namespace,
    effect: (key = "order:1", more = {}) => requestOf(namespace, "effect", key, more),
    lock: (key = "thread:1", more = {}) => requestOf(namespace, "lock", key, more),
  };
}

export function requestOf(
  namespace: string,
  kind: ClaimKind,
  key: string,
  more: Partial<ClaimRequest> = {},
): ClaimRequest {
  return {
    id: claimId(namespace, kind, key),
    attemptId: randomId(),
    namespace,
    kind,
    key,
    name: kind === "effect" ? "charge" : "run",
    scope: null,
    turn: null,
    runId: null,
    fingerprint: "1:5f70bf18a086007016e948b04aed3b82",
    holder: "worker-1",
    leaseMs,
    seen: null,
    fence: null,
    ...more,
  };
}

/** Another caller's claim of the same key. */
export function rival(request: ClaimRequest, more: Partial<ClaimRequest> = {}): ClaimRequest {
  return { ...request, attemptId: randomId(), holder: "worker-2", ...more };
}

export async function claim(store: Store, request: ClaimRequest): Promise<ClaimResult> {
  return only(await store.claim([request]));
}

export async function win(store: Store, request: ClaimRequest): Promise<ClaimRef> {
  const result = await claim(store, request);
  assert.equal(result.answer, "won");
  assert.ok(result.answer === "won");
  return { id: request.id, attemptId: request.attemptId, token: result.token };
}

/** Wins the free key of an earlier claim, as a caller does: looks, then names the version. */
export async function winAgain(store: Store, request: ClaimRequest): Promise<ClaimRef> {
  const { version } = await look(store, request.id);
  return win(store, rival(request, { seen: version }));
}

/** Refused, with the record that stands in the way. */
export async function refused(
  store: Store,
  request: ClaimRequest,
  answer: "taken" | "free" = "taken",
): Promise<ClaimRecord> {
  const result = await claim(store, request);
  assert.equal(result.answer, answer);
  assert.ok(result.answer === answer);
  return result.record;
}

export async function renew(store: Store, ref: ClaimRef, forMs: number = leaseMs): Promise<Renewed> {
  return only(await store.renew([{ ...ref, leaseMs: forMs }]));
}

export async function settle(
  store: Store,
  ref: ClaimRef,
  state: SettledState,
  payload: Payload | null = null,
): Promise<Settled> {
  return only(await store.settle([{ ...ref, state, payload }]));
}

export async function resolve(
  store: Store,
  { id, token, version }: DoubtRef,
  state: SettledState | "reopened",
  payload: Payload | null = null,
  by: Decision = decision(),
): Promise<Resolved> {
  return store.resolve({ id, token, version }, state === "reopened" ? { state } : { state, payload }, by);
}

/** Takes a lock from its holder. */
export async function unlock(
  store: Store,
  { id, token, version }: DoubtRef,
  by: Decision = decision(),
  attemptId: string = randomId(),
): Promise<Resolved> {
  return store.resolve({ id, token, version }, { state: "unlocked", attemptId }, by);
}

/** Asks the holder of a lock to stop. */
export async function askToStop(
  store: Store,
  { id, token, version }: DoubtRef,
  by: Decision = decision(),
): Promise<Resolved> {
  return store.resolve({ id, token, version }, { state: "cancel-requested" }, by);
}

export function decision(more: Partial<Decision> = {}): Decision {
  return { decisionId: randomId(), who: "ana@example.com", why: "asked the bank", evidence: null, ...more };
}

export async function look(store: Store, id: string): Promise<ClaimRecord> {
  const record = only(await store.get([id]));
  assert.ok(record !== null, "the row is gone");
  return record;
}

/** Claims, and lets every lease lapse. */
export async function lapse(harness: StoreHarness, store: Store, request: ClaimRequest): Promise<ClaimRef> {
  const ref = await win(store, request);
  await harness.expireLeases();
  return ref;
}

/** Claims, lets the lease lapse, and has somebody else decide. */
export async function decided(
  harness: StoreHarness,
  store: Store,
  request: ClaimRequest,
  state: SettledState,
  payload: Payload | null = null,
): Promise<ClaimRef> {
  const ref = await lapse(harness, store, request);
  assert.equal(await resolve(store, await look(store, ref.id), state, payload), "done");
  return ref;
}

/** All but the moment of reading. */
export function facts(record: ClaimRecord): Omit<ClaimRecord, "readAt"> {
  const { readAt, ...rest } = record;
  return rest;
}

/** Neither the row nor its history may differ after the action. */
export async function changesNothing(store: Store, id: string, action: () => Promise<void>): Promise<void> {
  const [record, history] = [facts(await look(store, id)), await store.history(id)];
  await action();
  assert.deepEqual(facts(await look(store, id)), record);
  assert.deepEqual(await store.history(id), history);
}

/** What the history says, in order. */
export async function told(store: Store, id: string): Promise<readonly string[]> {
  return (await store.history(id)).map((entry) => entry.what);
}

/** Until the store's clock is past a moment; within a few ticks, or the clock stands still. */
export async function clockPast(store: Store, moment: number): Promise<void> {
  for (const start = performance.now(); (await store.health()).now <= moment; )
    assert.ok(performance.now() - start < 5_000, "the store's clock stands still");
}

function only<T>(answers: readonly T[]): T {
  assert.equal(answers.length, 1, "one answer for one item");
  return answers[0] as T;
}
