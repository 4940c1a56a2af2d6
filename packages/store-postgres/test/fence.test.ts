import { describeOn } from "@twiceproof/test-servers/vitest";
import { expect, it } from "vitest";
import { bare, effect, lock, scratch, waiting, win } from "./support/scratch.ts";

/** Promise 14, step by step: which of two statements that meet waits for the other. */
describeOn(["postgres", "postgres-distribution"], "a claim under a fence", (server) => {
  const place = scratch(server);

  /** A run whose lease is over, a store for each of two connections, and an effect under the run that is free again. */
  async function scene() {
    const [first, second] = [await place.client(), await place.client()];
    const store = await place.migrated();
    const fence = await win(store, lock("thread"));
    const ref = await win(store, effect("used", { fence }));
    await store.settle([{ ...ref, state: "released", payload: null }]);
    await place.query("update $s.claims set lease_until = 'epoch' where kind = 'lock'");
    const [run, used] = await store.get([fence.id, ref.id]);
    if (!run || !used) throw new Error("the rows are gone");
    const takeover = lock("thread", { seen: run.version });
    const again = effect("used", { seen: used.version, fence });
    const inTransaction = place.store(bare(first));
    return { first, second, store, inTransaction, concurrent: place.store(second), fence, takeover, again, used };
  }

  it("waits for a takeover that is not committed yet, and is refused when it is", async () => {
    for (const keys of [["alone"], ["in", "a list"]]) {
      const { first, second, store, inTransaction, concurrent, fence, takeover } = await scene();
      const requests = keys.map((key) => effect(key, { fence }));
      await first.query("begin");
      const taken = await win(inTransaction, takeover);
      const claimed = concurrent.claim(requests);
      await waiting(place, second);
      await first.query("commit");
      for (const answer of await claimed)
        expect(answer).toMatchObject({ answer: "fenced", record: { ...taken, state: "claimed" } });
      expect(await store.get(requests.map(({ id }) => id))).toEqual(requests.map(() => null));
      await place.query("drop schema $s cascade");
    }
  });

  it("is granted when the takeover that it waited for is rolled back", async () => {
    const { first, second, inTransaction, concurrent, fence, takeover } = await scene();
    await first.query("begin");
    await win(inTransaction, takeover);
    const claimed = win(concurrent, effect("order", { fence }));
    await waiting(place, second);
    await first.query("rollback");
    expect((await claimed).token).toBe(1);
  });

  it("makes a takeover wait, and a release and an abandonment too, until it is over", async () => {
    for (const end of ["takeover", "release", "abandonment"] as const) {
      const { first, second, store, fence, takeover, again, used } = await scene();
      const ender = await place.client();
      await first.query("begin");
      await first.query(`select from ${place.schema}.claims where id = decode($1, 'hex') for update`, [used.id]);
      // It has locked its fence, and waits for the effect's own row.
      const claimed = win(place.store(second), again);
      await waiting(place, second);
      const ending = place.store(ender);
      const ended = {
        takeover: () => win(ending, takeover),
        release: () => ending.settle([{ ...fence, state: "released", payload: null }]),
        abandonment: () => ending.abandon(fence, "shutdown"),
      }[end]();
      await waiting(place, ender);
      // A heartbeat waits for neither; before a takeover it would win, and make that see another version.
      if (end !== "takeover")
        expect(await store.renew([{ ...fence, leaseMs: 1_000 }])).toEqual([expect.stringMatching(/held|busy/)]);
      await first.query("rollback");
      expect((await claimed).token).toBe(2);
      await ended;
      expect(await store.claim([effect("later", { fence })])).toMatchObject([{ answer: "fenced" }]);
      await place.query("drop schema $s cascade");
    }
  });

  it("waits for a release or an abandonment under way, and is refused", async () => {
    for (const end of ["release", "abandonment"] as const) {
      const { first, second, store, inTransaction, fence } = await scene();
      await first.query("begin");
      if (end === "release") await inTransaction.settle([{ ...fence, state: "released", payload: null }]);
      else await inTransaction.abandon(fence, "shutdown");
      const request = effect("order", { fence });
      const claimed = place.store(second).claim([request]);
      await waiting(place, second);
      await first.query("commit");
      expect(await claimed).toMatchObject([{ answer: "fenced" }]);
      expect(await store.get([request.id])).toEqual([null]);
      await place.query("drop schema $s cascade");
    }
  });

  it("does not hold up the heartbeat of its lock, nor a list of others'", async () => {
    const { first, second, store, fence, again, used } = await scene();
    const other = await win(store, lock("another thread"));
    await first.query("begin");
    await first.query(`select from ${place.schema}.claims where id = decode($1, 'hex') for update`, [used.id]);
    const claimed = win(place.store(second), again);
    await waiting(place, second);
    expect(await store.renew([fence, other].map((ref) => ({ ...ref, leaseMs: 60_000 })))).toEqual(["held", "held"]);
    await first.query("rollback");
    expect((await claimed).token).toBe(2);
  });

  it("is not held up by a heartbeat that is not committed yet", async () => {
    const { first, inTransaction, store, fence } = await scene();
    await first.query("begin");
    expect(await inTransaction.renew([{ ...fence, leaseMs: 60_000 }])).toEqual(["held"]);
    expect((await win(store, effect("order", { fence }))).token).toBe(1);
    await first.query("commit");
  });

  it("under many locks, released and taken over all the time, never starts after its run has ended", async () => {
    const store = await place.migrated();
    const runs = Array.from({ length: 4 }, (_, index) => `thread:${index}`);
    let late = 0;
    let won = 0;
    await Promise.all(
      runs.map(async (thread) => {
        for (let round = 0; round < 15; round++) {
          const [record] = await store.get([lock(thread).id]);
          const fence = await win(store, lock(thread, { seen: record?.version ?? null }));
          const requests = Array.from({ length: 6 }, (_, index) => effect(`${thread}:${round}:${index}`, { fence }));
          const early = requests.slice(0, 3).map((request) => store.claim([request]));
          const ended = store.settle([{ ...fence, state: "released", payload: null }]);
          const rest = store.claim(requests.slice(3));
          await ended;
          const seen = await store.get(requests.map(({ id }) => id));
          const answers = [...(await Promise.all(early)).flat(), ...(await rest)];
          for (const [index, answer] of answers.entries()) {
            if (answer.answer !== "won") continue;
            won++;
            // What the release did not wait for was refused: nothing appears after it.
            if (seen[index] === null) late++;
          }
        }
      }),
    );
    expect(late).toBe(0);
    expect(won).toBeGreaterThan(0);
  });
});
