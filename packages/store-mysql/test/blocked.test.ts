import { describeOn } from "@twiceproof/test-servers/vitest";
import { expect, it } from "vitest";
import { complete, connectionOn, effect, rejection, scratchUrl, storeOn, win } from "./support/scratch.ts";

/** Promise 16: a transaction of somebody else's has one row locked, for as long as it likes. */
const keys = Array.from({ length: 20 }, (_, index) => `order:${index}`);
const block = "select id from twiceproof_claims where `key` = 'order:7' for update";

describeOn(["mariadb", "mysql"], "one blocked row", (server) => {
  async function scene(limit = 4) {
    const url = await scratchUrl(server.url);
    const store = await storeOn(url, { connectionLimit: limit });
    const refs = [];
    for (const key of keys) refs.push(await win(store, effect(key)));
    const other = await connectionOn(url);
    // The index of the primary key alone: a scan at repeatable read would lock every row.
    await other.query("set session transaction isolation level read committed");
    await other.query("start transaction");
    await other.query(block);
    return { store, refs, other };
  }

  it.each([1, 4])("of a heartbeat is busy, and the others are renewed: a pool of %i", async (limit) => {
    const { store, refs, other } = await scene(limit);
    const before = await store.get(refs.map(({ id }) => id));
    const answers = await store.renew(refs.map((ref) => ({ ...ref, leaseMs: 120_000 })));
    expect(answers).toEqual(keys.map((key) => (key === "order:7" ? "busy" : "held")));
    const after = await store.get(refs.map(({ id }) => id));
    for (const [index, key] of keys.entries())
      expect((after[index]?.version ?? 0) - (before[index]?.version ?? 0)).toBe(key === "order:7" ? 0 : 1);
    await other.query("rollback");
    expect(await store.renew(refs.map((ref) => ({ ...ref, leaseMs: 120_000 })))).toEqual(keys.map(() => "held"));
  });

  it("is renewed at once for the others, before the blocked one is given up", async () => {
    const { store, refs } = await scene();
    const asked = store.renew(refs.map((ref) => ({ ...ref, leaseMs: 120_000 })));
    const neighbours = refs.filter((_, index) => index !== 7);
    let answered = false;
    void asked.then(() => {
      answered = true;
    });
    let renewed = 0;
    while (renewed < neighbours.length && !answered) {
      const records = await store.get(neighbours.map(({ id }) => id));
      renewed = records.filter((record) => record?.leaseMs === 120_000).length;
    }
    expect([renewed, answered]).toEqual([neighbours.length, false]);
    await asked;
  });

  it("does not keep the other settlements of its list from being recorded", async () => {
    const { store, refs, other } = await scene();
    const settlements = refs.map((ref) => ({ ...ref, state: "completed" as const, payload: null }));
    const asked = store.settle(settlements);
    const neighbours = refs.filter((_, index) => index !== 7);
    for (let done = 0; done < neighbours.length; )
      done = (await store.get(neighbours.map(({ id }) => id))).filter((record) => record?.state === "completed").length;
    // Each of them, asked again alone as core does, is answered while the first question still waits.
    const again = await Promise.all(
      settlements.filter((_, index) => index !== 7).map((settlement) => store.settle([settlement])),
    );
    expect(again.flat()).toEqual(neighbours.map(() => "already"));
    await other.query("rollback");
    expect((await asked).every((answer) => answer === "settled" || answer === "already")).toBe(true);
  }, 20_000);

  it("is read, and told to rivals, without waiting", async () => {
    const { store } = await scene();
    const results = await store.claim(keys.map((key) => effect(key)));
    expect(results.map(({ answer }) => answer)).toEqual(keys.map(() => "taken"));
    const [result] = await store.claim([effect("order:7")]);
    expect(result?.answer).toBe("taken");
  });

  it("of a verdict is given up after a while, with the cause, and nothing is written", async () => {
    const { store, refs, other } = await scene();
    const [id, token] = [refs[7]?.id ?? "", 1];
    const by = { decisionId: "0".repeat(32), who: "ana", why: "asked", evidence: null };
    const error = await rejection(store.resolve({ id, token, version: 1 }, { state: "released", payload: null }, by));
    expect(error).toMatchObject({ code: "STORE_UNAVAILABLE", cause: { errno: expect.any(Number) } });
    await other.query("rollback");
    expect(await store.history(id)).toEqual([]);
    await complete(store, refs[7] ?? { id, token, attemptId: "" });
  }, 30_000);
});
