import assert from "node:assert/strict";
import type { StoreLaw } from "./harness.ts";
import {
  changesNothing,
  decision,
  lapse,
  look,
  reason,
  receipt,
  resolve,
  scene,
  settle,
  settledStates,
  told,
  win,
  winAgain,
} from "./requests.ts";

/** Promise 13: a settlement, a verdict or an abandonment that comes again. */
export const repeatedWordLaws: readonly StoreLaw[] = [
  {
    number: 13,
    name: "a settlement that is repeated answers already, and changes nothing",
    async check(harness) {
      const { store, other, effect, lock } = await scene(harness);
      for (const build of [effect, lock])
        for (const state of settledStates)
          for (const payload of [receipt, null]) {
            const ref = await win(store, build(`${state} with ${payload?.text}`));
            assert.equal(await settle(store, ref, state, payload), "settled");
            for (const each of [store, other])
              await changesNothing(store, ref.id, async () =>
                assert.equal(await settle(each, ref, state, payload), "already"),
              );
          }
    },
  },
  {
    number: 13,
    name: "a verdict that is repeated answers already, and stands in the history once",
    async check(harness) {
      const { store, other, effect } = await scene(harness);
      for (const state of settledStates) {
        const ref = await lapse(harness, store, effect(state));
        const [doubt, by] = [await look(other, ref.id), decision()];
        assert.equal(await resolve(other, doubt, state, reason, by), "done");
        for (const each of [store, other])
          await changesNothing(store, ref.id, async () =>
            assert.equal(await resolve(each, doubt, state, reason, by), "already"),
          );
        assert.deepEqual(await told(store, ref.id), [`verdict-${state}`]);
      }
    },
  },
  {
    number: 13,
    name: "a verdict that is repeated after others claimed the key answers already, and ends no claim of theirs",
    async check(harness) {
      const { store, other, effect } = await scene(harness);
      const request = effect();
      await lapse(harness, store, request);
      const [doubt, by] = [await look(other, request.id), decision()];
      await resolve(other, doubt, "released", null, by);
      await winAgain(store, request);
      await harness.expireLeases();
      await changesNothing(store, request.id, async () =>
        assert.equal(await resolve(other, doubt, "released", null, by), "already"),
      );
    },
  },
  {
    number: 13,
    name: "a reopening that is repeated answers already, and stands in the history once",
    async check(harness) {
      const { store, other, effect } = await scene(harness);
      const ref = await win(store, effect());
      await settle(store, ref, "failed", reason);
      const [failed, by] = [await look(other, ref.id), decision()];
      assert.equal(await resolve(other, failed, "reopened", null, by), "done");
      assert.equal(await resolve(store, failed, "reopened", null, by), "already");
      assert.deepEqual(await told(store, ref.id), ["reopened"]);
    },
  },
  {
    number: 13,
    name: "a decision id that comes back with another verdict is refused",
    async check(harness) {
      const { store, other, effect } = await scene(harness);
      const ref = await lapse(harness, store, effect());
      const [doubt, by] = [await look(other, ref.id), decision()];
      assert.equal(await resolve(other, doubt, "failed", reason, by), "done");
      await changesNothing(store, ref.id, async () => {
        const now = await look(store, ref.id);
        for (const each of [doubt, now])
          for (const state of ["completed", "released", "reopened"] as const)
            assert.equal(await resolve(other, each, state, null, by), "refused");
      });
    },
  },
  {
    number: 13,
    name: "a decision id that comes back with another result, or for the key's next doubt, is refused",
    async check(harness) {
      const { store, other, effect } = await scene(harness);
      const first = await lapse(harness, store, effect("order:1"));
      const [doubt, by] = [await look(other, first.id), decision()];
      assert.equal(await resolve(other, doubt, "completed", receipt, by), "done");
      assert.equal(await resolve(other, doubt, "completed", reason, by), "refused");
      const request = effect("order:2");
      const second = await lapse(harness, store, request);
      const [released, again] = [await look(other, second.id), decision()];
      assert.equal(await resolve(other, released, "released", null, again), "done");
      await winAgain(other, request);
      await harness.expireLeases();
      const next = await look(store, second.id);
      assert.equal(await resolve(other, next, "released", null, again), "refused");
      assert.equal((await look(store, second.id)).state, "in-doubt");
    },
  },
  {
    number: 13,
    name: "a verdict that arrives twice at once is done once",
    async check(harness) {
      const { store, other, effect } = await scene(harness);
      for (let round = 0; round < 5; round++) {
        const ref = await lapse(harness, store, effect(`order:${round}`));
        const [doubt, by] = [await look(store, ref.id), decision()];
        const answers = await Promise.all([store, other].map((each) => resolve(each, doubt, "released", null, by)));
        assert.deepEqual(answers.sort(), ["already", "done"]);
        assert.deepEqual(await told(store, ref.id), ["verdict-released"]);
      }
    },
  },
  {
    number: 13,
    name: "an abandonment that is repeated changes nothing, and stands in the history once",
    async check(harness) {
      const { store, other, effect } = await scene(harness);
      const ref = await win(store, effect());
      await store.abandon(ref, "shutdown");
      for (const each of [store, other]) await changesNothing(store, ref.id, () => each.abandon(ref, "shutdown"));
      assert.deepEqual(await told(store, ref.id), ["abandoned"]);
    },
  },
];
