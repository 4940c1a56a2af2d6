import assert from "node:assert/strict";
import type { StoreLaw } from "./harness.ts";
import {
  changesNothing,
  claim,
  lapse,
  look,
  receipt,
  refused,
  renew,
  rival,
  scene,
  settle,
  settledStates,
  win,
  winAgain,
} from "./requests.ts";

/** Promise 13: an acknowledgement was lost, so the claim comes again. */
export const repeatedClaimLaws: readonly StoreLaw[] = [
  {
    number: 13,
    name: "a claim that is repeated is won again, with the same token, and changes nothing",
    async check(harness) {
      const { store, other, effect, lock } = await scene(harness);
      for (const request of [effect(), lock()]) {
        const ref = await win(store, request);
        for (const each of [store, other])
          await changesNothing(store, ref.id, async () => assert.deepEqual(await win(each, request), ref));
      }
    },
  },
  {
    number: 13,
    name: "a new claim of a used key that is repeated is won again, with the same token",
    async check(harness) {
      const { store, other, effect } = await scene(harness);
      const request = effect();
      await settle(store, await win(store, request), "released");
      const next = rival(request, { seen: (await look(store, request.id)).version });
      const ref = await win(store, next);
      assert.equal(ref.token, 2);
      await changesNothing(store, ref.id, async () => assert.deepEqual(await win(other, next), ref));
    },
  },
  {
    number: 13,
    name: "a claim that arrives twice at once wins one token",
    async check(harness) {
      const { store, other, effect } = await scene(harness);
      for (let round = 0; round < 10; round++) {
        const request = effect(`order:${round}`);
        const results = await Promise.all([claim(store, request), claim(other, request)]);
        assert.deepEqual(results, [
          { answer: "won", token: 1 },
          { answer: "won", token: 1 },
        ]);
        assert.equal(await renew(store, { ...request, token: 1 }), "held");
      }
    },
  },
  {
    number: 13,
    name: "after its settlement a repeated claim is told the outcome and never granted",
    async check(harness) {
      const { store, other, effect } = await scene(harness);
      for (const state of settledStates) {
        const request = effect(state);
        const ref = await win(store, request);
        await settle(store, ref, state, receipt);
        await changesNothing(store, ref.id, async () => {
          const { version } = await look(store, ref.id);
          for (const seen of [null, version]) {
            const record = await refused(other, { ...request, seen });
            assert.deepEqual([record.state, record.payload], [state, receipt]);
          }
        });
      }
    },
  },
  {
    number: 13,
    name: "after its holder abandoned it a repeated claim is not granted",
    async check(harness) {
      const { store, other, effect, lock } = await scene(harness);
      for (const request of [effect(), lock()]) {
        await store.abandon(await win(store, request), "shutdown");
        const { version } = await look(store, request.id);
        for (const seen of [null, version]) await refused(other, { ...request, seen });
        assert.equal((await look(store, request.id)).token, 1);
      }
    },
  },
  {
    number: 13,
    name: "a late duplicate of a claim whose key others claimed and released since is not granted",
    async check(harness) {
      const { store, other, effect } = await scene(harness);
      const first = effect();
      await settle(store, await win(store, first), "released");
      const second = rival(first, { seen: (await look(store, first.id)).version });
      await settle(other, await win(other, second), "released");
      for (const duplicate of [first, { ...first, seen: second.seen }])
        await changesNothing(store, first.id, async () => void (await refused(store, duplicate, "free")));
      await settle(other, await winAgain(other, first), "released");
      for (const duplicate of [first, second])
        await changesNothing(store, first.id, async () => void (await refused(store, duplicate, "free")));
    },
  },
  {
    number: 13,
    name: "a late duplicate of a takeover is not granted when others held the lock since",
    async check(harness) {
      const { store, other, lock } = await scene(harness);
      const first = lock();
      await lapse(harness, store, first);
      const second = rival(first, { seen: (await look(store, first.id)).version });
      await lapse(harness, other, second);
      const third = await winAgain(store, first);
      await harness.expireLeases();
      for (const duplicate of [first, second])
        await changesNothing(store, third.id, async () => void (await refused(other, duplicate, "free")));
    },
  },
];
