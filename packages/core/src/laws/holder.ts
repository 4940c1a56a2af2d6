import assert from "node:assert/strict";
import { randomId } from "../id.ts";
import type { ClaimRef, Store } from "../store.ts";
import type { StoreLaw } from "./harness.ts";
import {
  changesNothing,
  decided,
  lapse,
  look,
  reason,
  receipt,
  renew,
  resolve,
  scene,
  settle,
  settledStates,
  win,
  winAgain,
} from "./requests.ts";

/** Promises 3 and 5: tokens, and who may speak for a claim. */
export const holderLaws: readonly StoreLaw[] = [
  {
    number: 3,
    name: "an effect's token grows by one over every release, verdict and reopening",
    async check(harness) {
      const { store, other, effect } = await scene(harness);
      const request = effect();
      assert.equal((await win(store, request)).token, 1);
      const first = { id: request.id, attemptId: request.attemptId, token: 1 };
      assert.equal(await settle(store, first, "released"), "settled");
      assert.equal((await winAgain(other, request)).token, 2);
      await harness.expireLeases();
      assert.equal(await resolve(store, await look(store, request.id), "released"), "done");
      const third = await winAgain(store, request);
      assert.equal(third.token, 3);
      assert.equal(await settle(store, third, "failed", reason), "settled");
      assert.equal(await resolve(store, await look(store, request.id), "reopened"), "done");
      assert.equal((await winAgain(other, request)).token, 4);
    },
  },
  {
    number: 3,
    name: "a lock's token grows by one over every release and takeover",
    async check(harness) {
      const { store, other, lock } = await scene(harness);
      const request = lock();
      await settle(store, await win(store, request), "released");
      assert.equal((await winAgain(other, request)).token, 2);
      await harness.expireLeases();
      const third = await winAgain(store, request);
      assert.equal(third.token, 3);
      await store.abandon(third, "shutdown");
      assert.equal((await winAgain(other, request)).token, 4);
    },
  },
  {
    number: 3,
    name: "a replaced holder of a lock can neither renew, settle nor abandon",
    async check(harness) {
      const { store, other, lock } = await scene(harness);
      const request = lock();
      const old = await lapse(harness, store, request);
      await winAgain(other, request);
      await changesNothing(other, request.id, () => saysInVain(store, old));
    },
  },
  {
    number: 3,
    name: "a holder whose effect was released by a verdict and claimed anew can neither renew, settle nor abandon",
    async check(harness) {
      const { store, other, effect } = await scene(harness);
      const request = effect();
      const old = await decided(harness, store, request, "released");
      await winAgain(other, request);
      await changesNothing(other, request.id, async () => {
        assert.equal(await renew(store, old), "lost");
        assert.equal(await settle(store, old, "failed", reason), "lost");
        await store.abandon(old, "shutdown");
      });
    },
  },
  {
    number: 3,
    name: "the right attempt with another token speaks for nobody",
    async check(harness) {
      const { store, effect, lock } = await scene(harness);
      for (const request of [effect(), lock()]) {
        const ref = await win(store, request);
        await changesNothing(store, ref.id, () => saysInVain(store, { ...ref, token: ref.token + 1 }));
      }
    },
  },
  {
    number: 3,
    name: "the right token of another attempt speaks for nobody",
    async check(harness) {
      const { store, other, effect, lock } = await scene(harness);
      for (const request of [effect(), lock()]) {
        const ref = await win(store, request);
        await changesNothing(store, ref.id, () => saysInVain(other, { ...ref, attemptId: randomId() }));
      }
    },
  },
  {
    number: 3,
    name: "nobody speaks for a key that was never claimed",
    async check(harness) {
      const { store, effect } = await scene(harness);
      const { id, attemptId } = effect();
      await saysInVain(store, { id, attemptId, token: 1 });
      assert.deepEqual(await store.get([id]), [null]);
      assert.deepEqual(await store.history(id), []);
    },
  },
  {
    number: 5,
    name: "nobody can resolve a living claim",
    async check(harness) {
      const { store, other, effect } = await scene(harness);
      const ref = await win(store, effect());
      await changesNothing(store, ref.id, async () => {
        const record = await look(other, ref.id);
        for (const state of [...settledStates, "reopened"] as const)
          assert.equal(await resolve(other, record, state), "refused");
      });
      assert.equal(await settle(store, ref, "completed", receipt), "settled");
    },
  },
  {
    number: 5,
    name: "a claim that its holder renewed after a lapse is alive: nobody can resolve it",
    async check(harness) {
      const { store, other, effect } = await scene(harness);
      const ref = await lapse(harness, store, effect());
      await renew(store, ref);
      await changesNothing(store, ref.id, async () =>
        assert.equal(await resolve(other, await look(other, ref.id), "released"), "refused"),
      );
    },
  },
];

/** Renews, settles and abandons; all of it must be lost. */
async function saysInVain(store: Store, ref: ClaimRef): Promise<void> {
  assert.equal(await renew(store, ref), "lost");
  for (const state of settledStates) assert.equal(await settle(store, ref, state, receipt), "lost");
  await store.abandon(ref, "shutdown");
}
