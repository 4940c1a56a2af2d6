import type { ClaimRef, ClaimResult, Store } from "@twiceproof/core/store";
import { randomId } from "@twiceproof/core/store";
import { describeOn } from "@twiceproof/test-servers/vitest";
import { expect, it } from "vitest";
import { connectionOn, effect, lock, scratchUrl, someWait, storeOn, win } from "./support/scratch.ts";

/** Promise 14, in the one order that a race meets only now and then. */
const levels = ["read committed", "repeatable read", "serializable"];
const takeover =
  "update twiceproof_claims set token = 2, version = version + 1, attempt_id = unhex(?) where id = unhex(?)";

async function freed(store: Store, key: string): Promise<number> {
  const ref = await win(store, effect(key));
  await store.settle([{ ...ref, state: "released", payload: null }]);
  const [record] = await store.get([ref.id]);
  return record?.version ?? 0;
}

/** The ways in which a claim reaches its fence. */
const claims: Readonly<Record<string, (store: Store, fence: ClaimRef) => Promise<readonly ClaimResult[]>>> = {
  "a new key": (store, fence) => store.claim([effect("new", { fence })]),
  "new keys in a list": (store, fence) => store.claim([effect("one", { fence }), effect("two", { fence })]),
  "a free key": async (store, fence) => {
    const seen = await freed(store, "free");
    return store.claim([effect("free", { fence, seen })]);
  },
  "free and new keys in a list": async (store, fence) => {
    const seen = await freed(store, "free");
    return store.claim([effect("free", { fence, seen }), effect("other", { fence })]);
  },
};

describeOn(["mariadb", "mysql"], "a fence", (server) => {
  for (const level of levels) {
    it.each(Object.entries(claims))(
      `${level}: a takeover that commits while the claim waits refuses %s`,
      async (_, claim) => {
        const { store, other } = await scene(level);
        const fence = await win(store, lock("thread"));
        await other.query("start transaction");
        await other.query(takeover, [randomId(), fence.id]);
        const asked = claim(store, fence);
        await someWait(other);
        await other.query("commit");
        for (const result of await asked) expect(result).toMatchObject({ answer: "fenced", record: { token: 2 } });
      },
    );

    it(`${level}: a takeover waits for a claim that is under way`, async () => {
      const { url, store, other } = await scene(level);
      const third = await connectionOn(url);
      const fence = await win(store, lock("thread"));
      const request = effect("order:1", { fence });
      const columns =
        "id, namespace, kind, `key`, name, fingerprint, state, token, version, attempt_id, holder, lease_ms, lease_until, created_at, claimed_at";
      await other.query("start transaction");
      await other.query(
        `insert into twiceproof_claims (${columns}) values (unhex(?), 'n', 'effect', 'k', 'n', 'f', 'claimed', 1, 1, unhex(?), 'h', 1, 1, 1, 1)`,
        [request.id, randomId()],
      );
      const claimed = store.claim([request]);
      await someWait(other);
      let taken = false;

      const takes = third.query(takeover, [randomId(), fence.id]).then(() => {
        taken = true;
      });
      await someWait(other, 2);
      expect(taken).toBe(false);
      await other.query("rollback");
      expect(await claimed).toEqual([{ answer: "won", token: 1 }]);
      await takes;
    });
  }

  it("does not starve the heartbeat of the lock by claims without pause", async () => {
    const url = await scratchUrl(server.url);
    const store = await storeOn(url, { connectionLimit: 10 });
    const busy = await Promise.all([1, 2, 3, 4].map(() => storeOn(url)));
    const fence = await win(store, lock("thread"));
    const beside = await win(store, effect("beside"));
    let over = false;
    const claiming = busy.map(async (each, worker) => {
      for (let round = 0; !over; round++)
        await each.claim(Array.from({ length: 16 }, (_, item) => effect(`${worker}:${round}:${item}`, { fence })));
    });
    const answers: string[] = [];
    for (let beat = 0; beat < 20; beat++)
      answers.push(...(await store.renew([fence, beside].map((ref) => ({ ...ref, leaseMs: 60_000 })))));
    over = true;
    await Promise.all(claiming);
    expect(answers).toEqual(answers.map(() => "held"));
  }, 60_000);

  async function scene(level: string) {
    const url = await scratchUrl(server.url);
    const store = await storeOn(url, {}, `transaction isolation level ${level}`);
    return { url, store, other: await connectionOn(url) };
  }
});
