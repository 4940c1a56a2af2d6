import assert from "node:assert/strict";
import { randomId } from "../id.ts";
import type { ClaimRecord, ClaimRequest, Store } from "../store.ts";
import type { StoreLaw } from "./harness.ts";
import {
  changesNothing,
  claim,
  facts,
  lapse,
  look,
  receipt,
  refused,
  renew,
  rival,
  scene,
  settle,
  win,
  winAgain,
} from "./requests.ts";

/** Promise 14: a claim under a run needs that very run's lock. */
export const fenceLaws: readonly StoreLaw[] = [
  {
    number: 14,
    name: "a claim under a run is granted while that very run holds the lock",
    async check(harness) {
      const { store, other, effect, lock } = await scene(harness);
      const fence = await win(store, lock());
      const request = effect("order:1", { fence });
      const ref = await win(other, request);
      await settle(store, ref, "released");
      const { version: seen } = await look(store, ref.id);
      assert.equal((await win(other, rival(request, { seen }))).token, 2);
    },
  },
  {
    number: 14,
    name: "a lease of the lock that lapsed still counts while nobody took it over",
    async check(harness) {
      const { store, effect, lock } = await scene(harness);
      const fence = await lapse(harness, store, lock());
      await win(store, effect("order:1", { fence }));
      assert.equal((await look(store, fence.id)).state, "lapsed");
    },
  },
  {
    number: 14,
    name: "a claim under another token of the lock is refused",
    async check(harness) {
      const { store, effect, lock } = await scene(harness);
      const fence = await win(store, lock());
      for (const token of [fence.token - 1, fence.token + 1])
        await fenced(store, effect("order:1", { fence: { ...fence, token } }));
    },
  },
  {
    number: 14,
    name: "a claim under another attempt of the lock is refused",
    async check(harness) {
      const { store, effect, lock } = await scene(harness);
      const fence = await win(store, lock());
      await fenced(store, effect("order:1", { fence: { ...fence, attemptId: randomId() } }));
    },
  },
  {
    number: 14,
    name: "a claim under a lock that was released is refused",
    async check(harness) {
      const { store, effect, lock } = await scene(harness);
      const fence = await win(store, lock());
      await settle(store, fence, "released");
      assert.equal((await fenced(store, effect("order:1", { fence })))?.state, "released");
    },
  },
  {
    number: 14,
    name: "a claim under a lock that was taken over is refused, and the refusal shows who holds it",
    async check(harness) {
      const { store, other, effect, lock } = await scene(harness);
      const fence = await lapse(harness, store, lock());
      const taken = await winAgain(other, lock());
      const record = await fenced(store, effect("order:1", { fence }));
      assert.deepEqual([record?.attemptId, record?.token, record?.state], [taken.attemptId, 2, "claimed"]);
      assert.deepEqual(record && facts(record), facts(await look(store, fence.id)));
      await win(store, effect("order:1", { fence: taken }));
    },
  },
  {
    number: 14,
    name: "a claim under a lock that its holder abandoned is refused",
    async check(harness) {
      const { store, effect, lock } = await scene(harness);
      const fence = await win(store, lock());
      await store.abandon(fence, "shutdown");
      assert.equal((await fenced(store, effect("order:1", { fence })))?.abandoned, true);
    },
  },
  {
    number: 14,
    name: "a claim under a lock that has no row is refused, without a record",
    async check(harness) {
      const { store, effect, lock } = await scene(harness);
      const { id, attemptId } = lock();
      assert.equal(await fenced(store, effect("order:1", { fence: { id, attemptId, token: 1 } })), null);
    },
  },
  {
    number: 14,
    name: "an effect's row is no fence",
    async check(harness) {
      const { store, effect } = await scene(harness);
      const fence = await win(store, effect("outer"));
      await fenced(store, effect("inner", { fence }));
    },
  },
  {
    number: 14,
    name: "the new claim of a used key needs the fence too",
    async check(harness) {
      const { store, other, effect, lock } = await scene(harness);
      const fence = await win(store, lock());
      const request = effect("order:1", { fence });
      await settle(store, await win(store, request), "released");
      await settle(store, fence, "released");
      const { version: seen } = await look(store, request.id);
      await changesNothing(store, request.id, async () => {
        assert.equal((await claim(other, rival(request, { seen }))).answer, "fenced");
      });
      assert.equal((await win(other, rival(request, { seen, fence: null }))).token, 2);
    },
  },
  {
    number: 14,
    name: "a recorded result is served although the fence is lost, and so is every record that stands in the way",
    async check(harness) {
      const { store, effect, lock } = await scene(harness);
      const fence = await win(store, lock());
      const [done, living, doubtful] = ["done", "living", "doubtful"].map((key) => effect(key, { fence }));
      assert.ok(done && living && doubtful);
      await settle(store, await win(store, done), "completed", receipt);
      await win(store, living);
      await store.abandon(await win(store, doubtful), "shutdown");
      await settle(store, fence, "released");
      assert.deepEqual((await refused(store, rival(done))).payload, receipt);
      assert.equal((await refused(store, rival(living))).state, "claimed");
      assert.equal((await refused(store, rival(doubtful))).state, "in-doubt");
    },
  },
  {
    number: 14,
    name: "a claim that was won under a fence is told so again although the fence was lost since",
    async check(harness) {
      const { store, effect, lock } = await scene(harness);
      const fence = await win(store, lock());
      const request = effect("order:1", { fence });
      const ref = await win(store, request);
      await settle(store, fence, "released");
      assert.deepEqual(await win(store, request), ref);
    },
  },
  {
    number: 14,
    name: "of a takeover and a claim under the old run, the claim is refused if the takeover came first",
    async check(harness) {
      const { store, other, effect, lock } = await scene(harness);
      for (let round = 0; round < 10; round++) {
        const fence = await lapse(harness, store, lock(`thread:${round}`));
        const { version: seen } = await look(store, fence.id);
        const [taken, late] = await Promise.all([
          claim(other, rival(lock(`thread:${round}`), { seen })),
          claim(store, effect(`order:${round}`, { fence })),
        ]);
        assert.equal(taken.answer, "won");
        assert.ok(late.answer === "won" || late.answer === "fenced");
        await fenced(store, effect(`later:${round}`, { fence }));
      }
    },
  },
  {
    number: 14,
    name: "a claim under a fence leaves the lock as it is, and its holder's renewal works beside it",
    async check(harness) {
      const { store, other, effect, lock } = await scene(harness);
      const fence = await win(store, lock());
      await changesNothing(store, fence.id, async () => {
        await win(other, effect("order:0", { fence }));
      });
      const claims = Array.from({ length: 8 }, (_, index) => claim(other, effect(`order:${index + 1}`, { fence })));
      const renewals = [1, 2, 3, 4].map(() => renew(store, fence));
      for (const answer of await Promise.all(renewals)) assert.ok(answer === "held" || answer === "busy");
      for (const result of await Promise.all(claims)) assert.equal(result.answer, "won");
    },
  },
];

/** Refused for its fence, twice, and nothing of it was written. */
async function fenced(store: Store, request: ClaimRequest): Promise<ClaimRecord | null> {
  for (const each of [request, rival(request)]) assert.equal((await claim(store, each)).answer, "fenced");
  assert.deepEqual(await store.get([request.id]), [null]);
  const result = await claim(store, request);
  assert.ok(result.answer === "fenced");
  return result.record;
}
