import assert from "node:assert/strict";
import type { StoreLaw } from "./harness.ts";
import {
  changesNothing,
  decided,
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
} from "./requests.ts";

/** Promise 9: who may renew, and what no renewal revives. */
export const renewalLaws: readonly StoreLaw[] = [
  {
    number: 9,
    name: "the holder of a lapsed claim renews it while nobody resolved or replaced it",
    async check(harness) {
      const { store, other, effect, lock } = await scene(harness);
      for (const request of [effect(), lock()]) {
        const ref = await lapse(harness, store, request);
        assert.notEqual((await look(other, ref.id)).state, "claimed");
        assert.equal(await renew(store, ref), "held");
        assert.equal((await look(other, ref.id)).state, "claimed");
        assert.equal((await refused(other, rival(request))).attemptId, ref.attemptId);
      }
    },
  },
  {
    number: 9,
    name: "after a verdict, of whatever kind, the holder's renewal is lost",
    async check(harness) {
      const { store, other, effect } = await scene(harness);
      for (const state of settledStates) {
        const ref = await decided(harness, other, effect(state), state);
        await changesNothing(other, ref.id, async () => assert.equal(await renew(store, ref), "lost"));
      }
    },
  },
  {
    number: 9,
    name: "no renewal revives an abandoned claim",
    async check(harness) {
      const { store, other, effect, lock } = await scene(harness);
      for (const request of [effect(), lock()]) {
        const ref = await win(store, request);
        await store.abandon(ref, "shutdown");
        for (const each of [store, other])
          await changesNothing(store, ref.id, async () => assert.equal(await renew(each, ref), "lost"));
      }
    },
  },
  {
    number: 9,
    name: "a renewal that is in flight while its claim is abandoned does not revive it",
    async check(harness) {
      const { store, other, effect } = await scene(harness);
      for (let round = 0; round < 10; round++) {
        const ref = await win(store, effect(`order:${round}`));
        const both = [() => renew(other, ref), () => store.abandon(ref, "shutdown")];
        await Promise.all((round % 2 === 0 ? both : both.reverse()).map((start) => start()));
        const { state, abandoned } = await look(store, ref.id);
        assert.deepEqual([state, abandoned], ["in-doubt", true]);
      }
    },
  },
  {
    number: 9,
    name: "the holder may settle what it abandoned",
    async check(harness) {
      const { store, other, effect } = await scene(harness);
      for (const state of settledStates) {
        const ref = await win(store, effect(state));
        await store.abandon(ref, "timeout");
        assert.equal(await settle(store, ref, state, receipt), "settled");
        const record = await look(other, ref.id);
        assert.deepEqual([record.state, record.payload, record.byVerdict], [state, receipt, false]);
      }
    },
  },
  {
    number: 9,
    name: "a renewal extends a lease and never shortens it",
    async check(harness) {
      const { store, effect, lock } = await scene(harness);
      for (const request of [effect(), lock()]) {
        const ref = await win(store, request);
        const before = await look(store, ref.id);
        assert.equal(await renew(store, ref, 1_000), "held");
        const same = await look(store, ref.id);
        assert.equal(same.leaseUntil, before.leaseUntil);
        assert.ok(same.leaseUntil - same.readAt <= same.leaseMs);
        assert.equal(await renew(store, ref, 1_200_000), "held");
        const longer = await look(store, ref.id);
        assert.ok(longer.leaseUntil > before.leaseUntil + 300_000);
        assert.equal(longer.leaseMs, 1_200_000);
      }
    },
  },
  {
    number: 9,
    name: "each renewal of a batch has a lease of its own",
    async check(harness) {
      const { store, effect } = await scene(harness);
      const refs = await Promise.all(["a", "b"].map((key) => win(store, effect(key))));
      const leases = [1_200_000, 2_400_000];
      const answers = await store.renew(refs.map((ref, index) => ({ ...ref, leaseMs: leases[index] ?? 0 })));
      assert.deepEqual(answers, ["held", "held"]);
      const records = await store.get(refs.map((ref) => ref.id));
      assert.deepEqual(
        records.map((record) => record?.leaseMs),
        leases,
      );
    },
  },
];
