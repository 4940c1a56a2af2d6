import assert from "node:assert/strict";
import { randomId } from "../id.ts";
import type { ClaimRecord, ClaimRequest, Store, TicketRequest } from "../store.ts";
import type { StoreHarness } from "./harness.ts";
import { claim, lapse, leaseMs, look, rival, type Scene, settle, unlock, win } from "./requests.ts";

/** A wait for the lock of this request. */
export function ticketOf({ id }: Pick<ClaimRequest, "id">, more: Partial<TicketRequest> = {}): TicketRequest {
  return { id, ticketId: randomId(), runId: null, holder: "waiter-1", leaseMs, maxQueue: 100, ...more };
}

/** Enters, or asks again: how many wait before it. */
export async function enter(store: Store, ticket: TicketRequest): Promise<number> {
  const queued = await store.queue(ticket);
  assert.equal(queued.answer, "queued");
  assert.ok(queued.answer === "queued");
  return queued.ahead;
}

/** So many tickets of one lock, entered one after the other. */
export async function enterAll(store: Store, request: ClaimRequest, count: number): Promise<readonly TicketRequest[]> {
  const tickets = Array.from({ length: count }, () => ticketOf(request));
  for (const [index, ticket] of tickets.entries()) assert.equal(await enter(store, ticket), index);
  return tickets;
}

export async function waiting(store: Store, id: string): Promise<readonly string[]> {
  return (await store.line(id)).map(({ ticketId }) => ticketId);
}

/** A claim from this place in the line. */
export function turnOf(
  request: ClaimRequest,
  { ticketId }: Pick<TicketRequest, "ticketId">,
  seen: number | null,
): ClaimRequest {
  return rival(request, { ticketId, seen });
}

/** Refused, since somebody waits before this claimant. */
export async function behind(store: Store, request: ClaimRequest): Promise<ClaimRecord | null> {
  const result = await claim(store, request);
  assert.equal(result.answer, "behind");
  assert.ok(result.answer === "behind");
  return result.record;
}

export function idsOf(tickets: readonly TicketRequest[]): readonly string[] {
  return tickets.map(({ ticketId }) => ticketId);
}

/** One lock of each kind of free, with its version. */
export async function freeLocks(
  harness: StoreHarness,
  { store, lock }: Pick<Scene, "store" | "lock">,
): Promise<readonly (readonly [request: ClaimRequest, version: number])[]> {
  const requests = ["lapsed", "abandoned", "released", "unlocked"].map((key) => lock(key));
  const [lapsed, abandoned, released, unlocked] = requests;
  assert.ok(lapsed && abandoned && released && unlocked);
  await lapse(harness, store, lapsed);
  await store.abandon(await win(store, abandoned), "shutdown");
  await settle(store, await win(store, released), "released");
  await win(store, unlocked);
  assert.equal(await unlock(store, await look(store, unlocked.id)), "done");
  return Promise.all(requests.map(async (request) => [request, (await look(store, request.id)).version] as const));
}
