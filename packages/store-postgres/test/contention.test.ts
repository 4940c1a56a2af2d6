import { randomId } from "@twiceproof/core/store";
import { describeOn } from "@twiceproof/test-servers/vitest";
import { expect, it, onTestFinished, vi } from "vitest";
import type { PostgresClient } from "../src/index.ts";
import { child } from "./support/child.ts";
import { bare, effect, rejection, scratch, until, waiting, win } from "./support/scratch.ts";

describeOn(["postgres", "postgres-distribution"], "statements that meet", (server) => {
  const place = scratch(server);

  it("give each key one winner among processes", { timeout: 60_000 }, async () => {
    await place.migrated();
    const children = [1, 2, 3, 4].map(() => child("race", place.url, place.schema, "300"));
    for (const each of children) expect(await each.line()).toBe('"ready"');
    for (const each of children) each.go();
    const won = await Promise.all(children.map(async (each) => JSON.parse(await each.line()) as string[]));
    expect(won.flat().length).toBe(300);
    expect(new Set(won.flat()).size).toBe(300);
  });

  it("let a claim that waited for another's see its record, not a free key", async () => {
    const [first, second] = [await place.client(), await place.client()];
    await place.migrated();
    const held = effect("order");
    await first.query("begin");
    await win(place.store(bare(first)), held);
    for (const commits of [false, true]) {
      const claimed = place.store(second).claim([effect("order"), effect(`neighbour:${commits}`)]);
      await waiting(place, second);
      await first.query(commits ? "commit" : "rollback");
      const [order, neighbour] = await claimed;
      expect(neighbour).toEqual({ answer: "won", token: 1 });
      if (commits) expect(order).toMatchObject({ answer: "taken", record: { attemptId: held.attemptId } });
      else {
        expect(order).toEqual({ answer: "won", token: 1 });
        await place.query("delete from $s.claims");
        await first.query("begin");
        await win(place.store(bare(first)), held);
      }
    }
  });

  it("let no blocked row delay its neighbours in a list", async () => {
    const [first, second] = [await place.client(), await place.client()];
    const store = await place.migrated();
    const [blocked, free, neighbour] = [
      await win(store, effect("blocked")),
      await win(store, effect("free")),
      await win(store, effect("neighbour")),
    ];
    await store.settle([{ ...free, state: "released", payload: null }]);
    const { version: seen } = (await store.get([free.id]))[0] ?? { version: 0 };
    await first.query("begin");
    await first.query(`select from ${place.schema}.claims where key in ('blocked', 'free') for update`);
    expect(await store.renew([blocked, neighbour].map((ref) => ({ ...ref, leaseMs: 60_000 })))).toEqual([
      "busy",
      "held",
    ]);
    const settled = store.settle([blocked, neighbour].map((ref) => ({ ...ref, state: "completed", payload: null })));
    const claimed = place.store(second).claim([effect("free", { seen }), effect("new"), effect("newer")]);
    await waiting(place, second);
    await until(async () => {
      const records = await store.get([neighbour.id, effect("new").id, effect("newer").id]);
      return records.every((record) => record !== null && (record.key !== "neighbour" || record.state === "completed"));
    });
    await first.query("rollback");
    expect(await settled).toEqual(["settled", "settled"]);
    expect(await claimed).toEqual([
      { answer: "won", token: 2 },
      { answer: "won", token: 1 },
      { answer: "won", token: 1 },
    ]);
  });

  it("do not deadlock, in whatever order lists name the same keys", { timeout: 60_000 }, async () => {
    const codes: unknown[] = [];
    await place.migrated();
    const stores = Array.from({ length: 6 }, () => place.store(listening(place.pool({ max: 2 }), codes)));
    let settlements = 0;
    await Promise.all(
      stores.map(async (store) => {
        for (let round = 0; round < 15; round++) {
          const requests = shuffled(Array.from({ length: 30 }, (_, index) => effect(`${round}:${index}`)));
          const answers = await store.claim(requests);
          const held = requests
            .filter((_, index) => answers[index]?.answer === "won")
            .map(({ id, attemptId }) => ({ id, attemptId, token: 1 }));
          const others = requests.map(({ id, attemptId }) => ({ id, attemptId, token: 1, leaseMs: 60_000 }));
          const [said] = await Promise.all([
            store.settle(shuffled(held).map((ref) => ({ ...ref, state: "completed", payload: null }))),
            store.renew(shuffled(others)),
          ]);
          settlements += said.filter((each) => each === "settled").length;
        }
      }),
    );
    expect(settlements).toBe(15 * 30);
    expect(codes).toEqual([]);
  });

  it("leave one word in the history when a late one is said twice at once", async () => {
    const stores = [await place.migrated(), place.store(), place.store(), place.store()] as const;
    const [store] = stores;
    for (let round = 0; round < 10; round++) {
      const ref = await win(store, effect(`order:${round}`));
      await store.abandon(ref, "shutdown");
      const [doubt] = await store.get([ref.id]);
      const by = { decisionId: randomId(), who: "ana", why: "asked the bank", evidence: null };
      const verdict = { state: "completed", payload: { format: "json", text: "1" } } as const;
      if (doubt) expect(await store.resolve(doubt, verdict, by)).toBe("done");
      const word = { ...ref, state: "completed", payload: { format: "json", text: "2" } } as const;
      const answers = await Promise.all(stores.map((each) => each.settle([word])));
      expect(answers.flat()).toEqual(["lost", "lost", "lost", "lost"]);
      expect((await store.history(ref.id)).map(({ what }) => what)).toEqual([
        "abandoned",
        "verdict-completed",
        "late-completed",
      ]);
    }
  });

  it("are asked again after a serialization failure, with the same attempt", async () => {
    const codes: unknown[] = [];
    const options = "-c default_transaction_isolation=serializable";
    await place.migrated();
    const stores = Array.from({ length: 8 }, () => place.store(listening(place.pool({ max: 1, options }), codes)));
    for (let round = 0; round < 10; round++) {
      const answers = await Promise.all(stores.map((store) => store.claim([effect(`order:${round}`)])));
      expect(answers.flat().filter(({ answer }) => answer === "won")).toHaveLength(1);
    }
    expect(codes).toContain("40001");
    expect(new Set(codes)).toEqual(new Set(["40001"]));
  });

  it("go on waiting for a lock beyond the connection's lock_timeout, under the fake timers of a user's test too", async () => {
    const [first, second] = [await place.client(), await place.client({ options: "-c lock_timeout=20" })];
    const codes: unknown[] = [];
    await place.migrated();
    await first.query("begin");
    await win(place.store(bare(first)), effect("order"));
    const store = place.store(listening(second, codes));
    vi.useFakeTimers({ toFake: ["setTimeout", "setInterval", "setImmediate", "Date"] });
    onTestFinished(() => void vi.useRealTimers());
    const claimed = store.claim([effect("order")]);
    await until(async () => (await place.query("select 1 as one")).length === 1 && codes.length >= 3);
    await first.query("rollback");
    expect(await claimed).toEqual([{ answer: "won", token: 1 }]);
    expect(new Set(codes)).toEqual(new Set(["55P03"]));
  });

  it("write nothing for a replay, alone, in a list or under a run", async () => {
    const store = await place.migrated();
    const fence = await win(store, effect("thread", { kind: "lock" }));
    const keys = Array.from({ length: 20 }, (_, index) => `order:${index}`);
    for (const key of keys)
      await store.settle([{ ...(await win(store, effect(key))), state: "completed", payload: null }]);
    const client = await place.client();
    const replaying = place.store(bare(client));
    const assigned = async () => (await client.query("select pg_current_xact_id_if_assigned() as xid")).rows[0].xid;
    await replaying.get([fence.id]);
    for (const more of [{}, { fence }, { seen: 1 }, { seen: 1, fence }]) {
      await client.query("begin");
      const answers = [
        await replaying.claim(keys.map((key) => effect(key, more))),
        await replaying.claim([effect("order:1", more)]),
      ].flat();
      expect(answers.every((each) => each.answer === "taken" && each.record.state === "completed")).toBe(true);
      expect(await assigned()).toBeNull();
      await client.query("rollback");
    }
    await client.query("begin");
    await win(replaying, effect("another"));
    expect(await assigned()).not.toBeNull();
    await client.query("rollback");
  });

  it("answer a replay in one round trip", async () => {
    const store = await place.migrated();
    const fence = await win(store, effect("thread", { kind: "lock" }));
    const [one, two] = [effect("one"), effect("two")];
    for (const request of [one, two])
      await store.settle([{ ...(await win(store, request)), state: "completed", payload: null }]);
    const client = await place.client();
    let trips = 0;
    const counting = place.store({
      query(text, parameters) {
        trips++;
        return client.query(text, parameters);
      },
    });
    await counting.get([one.id]);
    for (const requests of [["one"], ["one", "two"]])
      for (const more of [{}, { fence }]) {
        trips = 0;
        await counting.claim(requests.map((key) => effect(key, more)));
        expect(trips).toBe(1);
      }
  });
});

describeOn(["postgres"], "a statement in whose way others are", (server) => {
  const place = scratch(server);

  it("gives up after ten seconds, and says what was in the way", { timeout: 30_000 }, async () => {
    const [first, second] = [await place.client(), await place.client({ options: "-c lock_timeout=100" })];
    const store = await place.migrated();
    const ref = await win(store, effect("order"));
    await first.query("begin");
    await first.query(`select from ${place.schema}.claims for update`);
    const settlement = { ...ref, state: "completed", payload: null } as const;
    expect(await rejection(place.store(second).settle([settlement]))).toMatchObject({
      code: "STORE_UNAVAILABLE",
      message: expect.stringContaining("in the way"),
      cause: expect.objectContaining({ code: "55P03" }),
    });
    await first.query("rollback");
    expect(await place.store(second).settle([settlement])).toEqual(["settled"]);
  });
});

/** Notes what the server refuses. */
function listening(client: Pick<PostgresClient, "query">, codes: unknown[]): PostgresClient {
  return {
    async query(text, parameters) {
      try {
        return await client.query(text, parameters);
      } catch (error) {
        codes.push((error as { code?: unknown }).code);
        throw error;
      }
    },
  };
}

function shuffled<T>(items: readonly T[]): readonly T[] {
  return items
    .map((item) => [Math.random(), item] as const)
    .sort(([a], [b]) => a - b)
    .map(([, item]) => item);
}
