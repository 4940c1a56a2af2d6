import { afterEach, describe, expect, it, vi } from "vitest";
import { randomId } from "../src/id.ts";
import { requestOf } from "../src/laws/requests.ts";
import { type StoreHarness, storeLaws } from "../src/laws.ts";
import { memoryStore } from "../src/memory-store.ts";

const day = 86_400_000;

/** All connections are one store, whose clock can be put forward. */
function harness(): StoreHarness {
  let ahead = 0;
  const store = memoryStore({ now: () => Date.now() + ahead });
  return {
    connect: async () => store,
    expireLeases: async () => {
      ahead += day;
    },
    close: () => store.close(),
  };
}

describe("the memory store keeps every law", () => {
  it.each(storeLaws)("$number: $name", (law) => law.check(harness()));

  it("also when all of them share one store", async () => {
    const shared = harness();
    for (const law of storeLaws) await law.check(shared);
  });
});

describe("the laws", () => {
  it("have names of their own, and stand in the order of the promises", () => {
    expect(new Set(storeLaws.map((law) => law.name)).size).toBe(storeLaws.length);
    expect(storeLaws.map((law) => law.number)).toEqual(storeLaws.map((law) => law.number).sort((a, b) => a - b));
  });

  it("cover every promise that a store alone can keep", () => {
    expect([...new Set(storeLaws.map((law) => law.number))]).toEqual([
      0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 18,
    ]);
  });
});

describe("the memory store's clock", () => {
  afterEach(() => {
    vi.useRealTimers();
  });

  it("is not stopped by fake timers", async () => {
    const store = memoryStore();
    vi.useFakeTimers({ now: 0 });
    expect((await store.health()).now).toBeGreaterThan(Date.UTC(2024));
  });

  it("is the caller's when one is given, in whole milliseconds", async () => {
    let now = 1_000.75;
    const store = memoryStore({ now: () => now });
    const request = requestOf("clock", "effect", "order:1", { leaseMs: 50 });
    await store.claim([request]);
    const [claimed] = await store.get([request.id]);
    expect(claimed).toMatchObject({ state: "claimed", leaseUntil: 1_050, readAt: 1_000 });
    now = 1_050;
    const [doubt] = await store.get([request.id]);
    expect(doubt).toMatchObject({ state: "in-doubt", leaseUntil: 1_050, readAt: 1_050, version: claimed?.version });
  });

  it("decides to the millisecond what is old enough to go", async () => {
    let now = 1_000;
    const store = memoryStore({ now: () => now });
    const request = requestOf("prune", "effect", "order:1");
    await store.claim([request]);
    await store.settle([{ id: request.id, attemptId: request.attemptId, token: 1, state: "failed", payload: null }]);
    const query = { namespace: "prune", olderThanMs: 500, limit: 10 };
    now = 1_500;
    expect(await store.prune(query)).toBe(0);
    now = 1_501;
    expect(await store.prune(query)).toBe(1);
  });
});

describe("what the memory store hands out", () => {
  it("is frozen, and no later write shows in it", async () => {
    const store = memoryStore();
    const request = requestOf("frozen", "effect", "order:1");
    const ref = { id: request.id, attemptId: request.attemptId, token: 1 };
    await store.claim([request]);
    await store.abandon(ref, "shutdown");
    const [before] = await store.get([request.id]);
    const history = await store.history(request.id);
    await store.settle([{ ...ref, state: "completed", payload: { format: "json", text: "1" } }]);
    const [after] = await store.get([request.id]);
    expect([before?.state, after?.state]).toEqual(["in-doubt", "completed"]);
    for (const value of [before, after, after?.payload, history, history[0]]) expect(value).toSatisfy(Object.isFrozen);
  });

  it("says that it shares nothing, and two stores do share nothing", async () => {
    const [one, two] = [memoryStore(), memoryStore()];
    const request = requestOf("apart", "effect", "order:1");
    await one.claim([request]);
    expect(await two.get([request.id])).toEqual([null]);
    expect(await two.claim([{ ...request, attemptId: randomId() }])).toEqual([{ answer: "won", token: 1 }]);
    expect((await one.health()).warnings).toEqual([expect.stringContaining("this process alone")]);
  });
});
