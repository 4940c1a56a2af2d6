import { describeOn } from "@twiceproof/test-servers/vitest";
import { expect, it } from "vitest";
import { bare, lock, scratch, ticket, waiting, win } from "./support/scratch.ts";

/** What a race meets only now and then, in one order after the other. */
describeOn(["postgres", "postgres-distribution"], "a line", (server) => {
  const place = scratch(server);

  /** A lock that was released, the transaction of one that is under way, and a store that meets it. */
  async function scene(options?: string) {
    const [first, second] = [await place.client(), await place.client(options === undefined ? {} : { options })];
    const store = await place.migrated();
    const ref = await win(store, lock("thread"));
    await store.settle([{ ...ref, state: "released", payload: null }]);
    const [record] = await store.get([ref.id]);
    await first.query("begin");
    const [underWay, meeting] = [place.store(bare(first)), place.store(second)];
    await meeting.health();
    await meeting.line(ref.id);
    return { store, first, second, underWay, meeting, seen: record?.version ?? null };
  }

  it.each([
    ["commit", { answer: "behind", record: { state: "released", token: 1 } }],
    ["rollback", { answer: "won", token: 2 }],
  ])("a claim without a place that waited for an entry looks again: %s", async (end, expected) => {
    const { first, second, underWay, meeting, seen } = await scene();
    await underWay.queue(ticket("thread"));
    const claimed = meeting.claim([lock("thread", { seen })]);
    await waiting(place, second);
    await first.query(end);
    expect(await claimed).toMatchObject([expected]);
  });

  it.each([
    ["commit", { state: "claimed", token: 2 }],
    ["rollback", { state: "released", token: 1 }],
  ])("an entry that waited for a claim tells what became of it: %s", async (end, record) => {
    const { first, second, underWay, meeting, seen } = await scene();
    await win(underWay, lock("thread", { seen }));
    const queued = meeting.queue(ticket("thread"));
    await waiting(place, second);
    await first.query(end);
    expect(await queued).toMatchObject({ answer: "queued", ahead: 0, record });
  });

  it.each([
    ["commit", 1],
    ["rollback", 0],
  ])("an entry that waited for another's stands behind it, if it came about: %s", async (end, ahead) => {
    for (const key of ["thread", "never held"]) {
      const { store, first, second, underWay, meeting } = await scene();
      await underWay.queue(ticket(key));
      const queued = meeting.queue(ticket(key));
      await waiting(place, second);
      await first.query(end);
      expect(await queued).toMatchObject({ answer: "queued", ahead });
      expect(await store.line(lock(key).id)).toHaveLength(ahead + 1);
      await place.query("delete from $s.claims");
      await place.query("delete from $s.line");
    }
  });

  it("asks again where the level is stricter", async () => {
    for (const level of ["repeatable\\ read", "serializable"]) {
      const { first, second, underWay, meeting, seen } = await scene(`-c default_transaction_isolation=${level}`);
      await underWay.queue(ticket("thread"));
      const claimed = meeting.claim([lock("thread", { seen })]);
      await waiting(place, second);
      await first.query("commit");
      expect(await claimed).toMatchObject([{ answer: "behind" }]);
      await place.query("delete from $s.claims");
      await place.query("delete from $s.line");
    }
  });

  it("tells a place that is kept in one trip, and writes nothing for it", async () => {
    const store = await place.migrated();
    await win(store, lock("thread"));
    const mine = ticket("thread");
    await store.queue(ticket("thread"));
    await store.queue(mine);
    const client = await place.client();
    let trips = 0;
    const counting = place.store({
      query(text, parameters) {
        trips++;
        return client.query(text, parameters);
      },
    });
    await counting.line(mine.id);
    await client.query("begin");
    trips = 0;
    for (let round = 1; round <= 3; round++) {
      expect(await counting.queue(mine)).toMatchObject({ ahead: 1, record: { state: "claimed" } });
      expect(trips).toBe(round);
    }
    const assigned = "select pg_current_xact_id_if_assigned() as xid";
    expect((await client.query(assigned)).rows).toEqual([{ xid: null }]);
    await counting.queue({ ...mine, leaseMs: 120_000 });
    expect((await client.query(assigned)).rows).not.toEqual([{ xid: null }]);
    await client.query("rollback");
  });

  it("turns nobody away of many who enter at once", { timeout: 60_000 }, async () => {
    const store = await place.migrated();
    await win(store, lock("thread"));
    for (const key of ["thread", "never held"]) {
      const stores = [store, place.store(), place.store()];
      const tickets = Array.from({ length: 40 }, () => ticket(key, { maxQueue: 40 }));
      const answers = await Promise.all(tickets.map((each, index) => stores[index % 3]?.queue(each)));
      const places = answers.map((queued) => (queued?.answer === "queued" ? queued.ahead : -1));
      expect(places.toSorted((a, b) => a - b)).toEqual(tickets.map((_, index) => index));
    }
  });

  it("keeps no row of those who are gone for longer than until the next one enters", async () => {
    const store = await place.migrated();
    const gone = Array.from({ length: 5 }, () => ticket("thread"));
    for (const each of gone) await store.queue(each);
    for (const each of gone) await store.leave(each.id, each.ticketId);
    expect(await store.queue(ticket("thread"))).toMatchObject({ ahead: 0 });
    expect(await place.query("select place::int from $s.line")).toEqual([{ place: 6 }]);
  });
});
