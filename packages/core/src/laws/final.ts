import assert from "node:assert/strict";
import type { StoreLaw } from "./harness.ts";
import {
  changesNothing,
  look,
  reason,
  receipt,
  renew,
  resolve,
  scene,
  settle,
  settledStates,
  win,
} from "./requests.ts";

/** Promise 8: what is settled stays settled. */
export const finalLaws: readonly StoreLaw[] = [
  {
    number: 8,
    name: "a settled claim is final: every other settlement is lost",
    async check(harness) {
      const { store, other, effect } = await scene(harness);
      for (const first of settledStates)
        for (const second of settledStates) {
          const ref = await win(store, effect(`${first}, then ${second}`));
          assert.equal(await settle(store, ref, first, receipt), "settled");
          await changesNothing(other, ref.id, async () => {
            if (first !== second) assert.equal(await settle(store, ref, second, receipt), "lost");
            assert.equal(await settle(store, ref, second, reason), "lost");
            assert.equal(await settle(store, ref, second, null), "lost");
          });
        }
    },
  },
  {
    number: 8,
    name: "a settled claim can be neither renewed nor abandoned",
    async check(harness) {
      const { store, effect, lock } = await scene(harness);
      for (const build of [effect, lock])
        for (const state of settledStates) {
          const ref = await win(store, build(state));
          await settle(store, ref, state);
          await changesNothing(store, ref.id, async () => {
            assert.equal(await renew(store, ref), "lost");
            await store.abandon(ref, "shutdown");
          });
        }
    },
  },
  {
    number: 8,
    name: "a completed, failed or released claim takes no verdict but the reopening of a failed one",
    async check(harness) {
      const { store, other, effect } = await scene(harness);
      for (const state of settledStates) {
        const ref = await win(store, effect(state));
        await settle(store, ref, state);
        await harness.expireLeases();
        await changesNothing(store, ref.id, async () => {
          for (const verdict of settledStates)
            assert.equal(await resolve(other, await look(other, ref.id), verdict), "refused");
        });
      }
    },
  },
];
