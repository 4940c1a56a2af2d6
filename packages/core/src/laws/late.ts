import assert from "node:assert/strict";
import type { StoreLaw } from "./harness.ts";
import {
  changesNothing,
  decided,
  facts,
  lapse,
  look,
  reason,
  receipt,
  refused,
  renew,
  resolve,
  rival,
  scene,
  settle,
  settledStates,
  told,
  winAgain,
} from "./requests.ts";

/** Promise 4: what a holder says after its lease, after a verdict, or after a new claim. */
export const lateLaws: readonly StoreLaw[] = [
  {
    number: 4,
    name: "the holder may settle late while nobody resolved its claim",
    async check(harness) {
      const { store, other, effect } = await scene(harness);
      for (const state of settledStates) {
        const ref = await lapse(harness, store, effect(state));
        assert.equal(await settle(store, ref, state, receipt), "settled");
        const record = await look(other, ref.id);
        assert.deepEqual([record.state, record.payload, record.byVerdict], [state, receipt, false]);
        assert.deepEqual(await told(store, ref.id), []);
      }
    },
  },
  {
    number: 4,
    name: "a late completed after a new claim is kept once, and the new claim is asked to stop",
    async check(harness) {
      const { store, other, effect } = await scene(harness);
      const request = effect();
      const old = await decided(harness, store, request, "released");
      const now = await winAgain(other, request);
      assert.equal(await renew(other, now), "held");
      assert.equal(await settle(store, old, "completed", receipt), "disputed");
      await changesNothing(store, old.id, async () =>
        assert.equal(await settle(other, old, "completed", receipt), "disputed"),
      );
      const record = await look(store, old.id);
      assert.deepEqual([record.state, record.token, record.cancelRequested], ["claimed", 2, true]);
      for (const _ of [1, 2]) assert.equal(await renew(other, now), "cancel-requested");
      const late = (await store.history(old.id)).at(-1);
      assert.deepEqual([late?.what, late?.payload, late?.token], ["late-completed", receipt, 1]);
      assert.equal(late?.attemptId, old.attemptId);
      assert.deepEqual(await told(store, old.id), ["verdict-released", "late-completed"]);
    },
  },
  {
    number: 4,
    name: "a claim that was asked to stop may still be completed or failed by its holder",
    async check(harness) {
      const { store, other, effect } = await scene(harness);
      for (const state of ["completed", "failed"] as const) {
        const request = effect(state);
        const old = await decided(harness, store, request, "released");
        const asked = await winAgain(other, request);
        await settle(store, old, "completed", receipt);
        assert.equal(await settle(other, asked, state, reason), "settled");
        assert.equal((await look(store, old.id)).state, state);
      }
    },
  },
  {
    number: 4,
    name: "a claim that was asked to stop does not free the key by its release",
    async check(harness) {
      const { store, other, effect } = await scene(harness);
      const request = effect();
      const old = await decided(harness, store, request, "released");
      const asked = await winAgain(other, request);
      await settle(store, old, "completed", receipt);
      assert.equal(await settle(other, asked, "released"), "disputed");
      const record = await refused(store, rival(request, { seen: (await look(store, old.id)).version }));
      assert.deepEqual([record.state, record.disputed, record.token], ["in-doubt", true, 2]);
      await changesNothing(store, old.id, async () => {
        assert.equal(await settle(other, asked, "released"), "disputed");
        assert.equal(await settle(other, old, "completed", receipt), "disputed");
        assert.equal(await renew(other, asked), "lost");
      });
      assert.equal(await resolve(store, record, "released", reason), "done");
      assert.equal(await renew(other, await winAgain(other, request)), "held");
    },
  },
  {
    number: 4,
    name: "a late completed shuts a key that a later claim had released",
    async check(harness) {
      const { store, other, effect } = await scene(harness);
      const request = effect();
      const old = await decided(harness, store, request, "released");
      await settle(other, await winAgain(other, request), "released");
      assert.equal(await settle(store, old, "completed", receipt), "disputed");
      const record = await refused(store, rival(request, { seen: (await look(store, old.id)).version }));
      assert.deepEqual([record.state, record.disputed], ["in-doubt", true]);
      assert.deepEqual(await told(store, old.id), ["verdict-released", "late-completed"]);
    },
  },
  {
    number: 4,
    name: "a contradiction that a verdict has ended is not raised again, nor is the next claim asked to stop",
    async check(harness) {
      const { store, other, effect } = await scene(harness);
      const request = effect();
      const old = await decided(harness, store, request, "released");
      await settle(other, await winAgain(other, request), "released");
      await settle(store, old, "completed", receipt);
      assert.equal(await resolve(other, await look(other, old.id), "released", reason), "done");
      await changesNothing(store, old.id, async () =>
        assert.equal(await settle(store, old, "completed", receipt), "disputed"),
      );
      const next = await winAgain(other, request);
      assert.equal(await settle(store, old, "completed", receipt), "disputed");
      assert.equal(await renew(other, next), "held");
    },
  },
  {
    number: 4,
    name: "a late completed after a new claim was settled leaves that settlement as it is",
    async check(harness) {
      const { store, other, effect } = await scene(harness);
      const request = effect();
      const old = await decided(harness, store, request, "released");
      await settle(other, await winAgain(other, request), "completed", reason);
      const before = facts(await look(store, old.id));
      assert.equal(await settle(store, old, "completed", receipt), "disputed");
      assert.deepEqual(facts(await look(store, old.id)), before);
      assert.deepEqual(await told(store, old.id), ["verdict-released", "late-completed"]);
    },
  },
  {
    number: 4,
    name: "a late completed after a later claim failed makes a reopening that did not know of it stale",
    async check(harness) {
      const { store, other, effect } = await scene(harness);
      const request = effect();
      const old = await decided(harness, store, request, "released");
      await settle(other, await winAgain(other, request), "failed", reason);
      const failed = await look(other, old.id);
      assert.equal(await settle(store, old, "completed", receipt), "disputed");
      assert.equal(await resolve(other, failed, "reopened"), "refused");
      const now = await look(other, old.id);
      assert.deepEqual([now.state, now.cancelRequested, now.payload], ["failed", true, reason]);
      assert.equal(await resolve(other, now, "reopened"), "done");
      assert.equal(await renew(other, await winAgain(other, request)), "held");
    },
  },
  {
    number: 4,
    name: "an equal late settlement confirms the verdict and changes nothing",
    async check(harness) {
      const { store, other, effect } = await scene(harness);
      for (const state of settledStates) {
        const ref = await decided(harness, other, effect(state), state, receipt);
        await changesNothing(other, ref.id, async () =>
          assert.equal(await settle(store, ref, state, receipt), "already"),
        );
      }
    },
  },
  {
    number: 4,
    name: "another late result than the verdict's is lost, but kept in the history once",
    async check(harness) {
      const { store, other, effect } = await scene(harness);
      const ref = await decided(harness, other, effect(), "completed", reason);
      const before = facts(await look(store, ref.id));
      for (const each of [store, other]) assert.equal(await settle(each, ref, "completed", receipt), "lost");
      assert.deepEqual(facts(await look(store, ref.id)), before);
      const [, late, ...more] = await store.history(ref.id);
      assert.deepEqual([late?.what, late?.payload, more], ["late-completed", receipt, []]);
    },
  },
  {
    number: 4,
    name: "a late failed or released that meets another verdict is lost, but kept in the history",
    async check(harness) {
      const { store, other, effect } = await scene(harness);
      for (const said of ["failed", "released"] as const)
        for (const state of settledStates.filter((other) => other !== said)) {
          const ref = await decided(harness, other, effect(`${said} after ${state}`), state, receipt);
          const before = facts(await look(store, ref.id));
          assert.equal(await settle(store, ref, said, reason), "lost");
          assert.deepEqual(facts(await look(store, ref.id)), before);
          assert.deepEqual(await told(store, ref.id), [`verdict-${state}`, `late-${said}`]);
        }
    },
  },
];
