import assert from "node:assert/strict";
import type { ClaimRef, PruneQuery, Store } from "../store.ts";
import type { StoreLaw } from "./harness.ts";
import {
  clockPast,
  decided,
  lapse,
  look,
  receipt,
  refused,
  requestOf,
  rival,
  scene,
  settle,
  settledStates,
  win,
} from "./requests.ts";

/** Promise 10: what retention may remove, and what it never does. */
export const keepLaws: readonly StoreLaw[] = [
  {
    number: 10,
    name: "settled effects are removed with their history, and their keys are new",
    async check(harness) {
      const { store, other, effect, namespace } = await scene(harness);
      const refs = [await decided(harness, store, effect("by verdict"), "completed", receipt)];
      for (const state of settledStates) {
        refs.push(await win(store, effect(state)));
        await settle(store, refs.at(-1) as ClaimRef, state, receipt);
      }
      assert.equal(await prune(other, refs, { namespace, olderThanMs: 0, limit: 100 }), 4);
      for (const { id } of refs) {
        assert.deepEqual(await store.get([id]), [null]);
        assert.deepEqual(await store.history(id), []);
      }
      assert.equal((await win(store, effect("completed"))).token, 1);
    },
  },
  {
    number: 10,
    name: "no claim that is alive, in doubt or disputed is removed",
    async check(harness) {
      const { store, effect, namespace } = await scene(harness);
      const disputed = await decided(harness, store, effect("disputed"), "released");
      await settle(store, disputed, "completed", receipt);
      const lapsed = await lapse(harness, store, effect("lapsed"));
      const abandoned = await win(store, effect("abandoned"));
      await store.abandon(abandoned, "shutdown");
      const living = await win(store, effect("living"));
      const refs = [disputed, lapsed, abandoned, living];
      assert.equal(await prune(store, refs, { namespace, olderThanMs: 0, limit: 100 }), 0);
      const states = await Promise.all(refs.map(async ({ id }) => (await look(store, id)).state));
      assert.deepEqual(states, ["in-doubt", "in-doubt", "in-doubt", "claimed"]);
      assert.equal((await store.history(disputed.id)).length, 2);
    },
  },
  {
    number: 10,
    name: "no lock is removed, whatever its state",
    async check(harness) {
      const { store, lock, namespace } = await scene(harness);
      const lapsed = await lapse(harness, store, lock("lapsed"));
      const refs = [lapsed, await win(store, lock("held"))];
      for (const state of settledStates) {
        const ref = await win(store, lock(state));
        refs.push(ref);
        await settle(store, ref, state);
      }
      assert.equal(await prune(store, refs, { namespace, olderThanMs: 0, limit: 100 }), 0);
      assert.ok((await store.get(refs.map(({ id }) => id))).every((record) => record?.token === 1));
    },
  },
  {
    number: 10,
    name: "what was settled more recently than asked is kept, whenever it was created",
    async check(harness) {
      const { store, effect, namespace } = await scene(harness);
      const request = effect();
      const ref = await lapse(harness, store, request);
      await settle(store, ref, "completed", receipt);
      assert.equal(await prune(store, [ref], { namespace, olderThanMs: 60_000, limit: 100 }), 0);
      assert.equal((await look(store, ref.id)).state, "completed");
    },
  },
  {
    number: 10,
    name: "no more than the limit is removed at once, and fewer means that none is left",
    async check(harness) {
      const { store, effect, namespace } = await scene(harness);
      const refs: ClaimRef[] = [];
      for (const key of ["a", "b", "c", "d", "e"]) {
        refs.push(await win(store, effect(key)));
        await settle(store, refs.at(-1) as ClaimRef, "completed");
      }
      const query = { namespace, olderThanMs: 0, limit: 2 };
      const counts = [await prune(store, refs, query), await store.prune(query), await store.prune(query)];
      assert.deepEqual(counts, [2, 2, 1]);
      assert.equal(await store.prune(query), 0);
    },
  },
  {
    number: 10,
    name: "only the namespace that was asked for is pruned, compared as bytes",
    async check(harness) {
      const { store, namespace } = await scene(harness);
      const refs = [];
      for (const each of [`${namespace}a`, `${namespace}A`, `${namespace}a `, `${namespace}á`]) {
        refs.push(await win(store, requestOf(each, "effect", "order:1")));
        await settle(store, refs.at(-1) as ClaimRef, "completed");
      }
      assert.equal(await prune(store, refs, { namespace: `${namespace}a`, olderThanMs: 0, limit: 100 }), 1);
      const left = await store.get(refs.map(({ id }) => id));
      assert.deepEqual(
        left.map((record) => record === null),
        [true, false, false, false],
      );
    },
  },
  {
    number: 10,
    name: "results can be dropped and the keys kept: what was settled stays settled, and nothing else is touched",
    async check(harness) {
      const { store, other, effect, lock, namespace } = await scene(harness);
      const settled = [await decided(harness, store, effect("by verdict"), "completed", receipt)];
      for (const state of settledStates) {
        settled.push(await win(store, effect(state)));
        await settle(store, settled.at(-1) as ClaimRef, state, receipt);
      }
      const refs = [await win(store, effect("living")), await win(store, lock("held"))];
      const query = { namespace, olderThanMs: 0, limit: 3, keepKeys: true };
      assert.equal(await prune(other, settled, query), 3);
      assert.equal(await store.prune(query), 1);
      assert.equal(await store.prune(query), 0);
      for (const { id } of settled) {
        assert.equal((await look(other, id)).payload, null);
        assert.ok((await store.history(id)).every(({ payload }) => payload === null));
      }
      const states = await Promise.all([...settled, ...refs].map(async ({ id }) => (await look(store, id)).state));
      assert.deepEqual(states, ["completed", ...settledStates, "claimed", "claimed"]);
      await refused(other, rival(effect("completed")));
    },
  },
];

/** Once the store's clock is past every settlement, so that "longer ago than 0 ms" holds for all. */
async function prune(store: Store, refs: readonly ClaimRef[], query: PruneQuery): Promise<number> {
  for (const { id } of refs) await clockPast(store, (await look(store, id)).settledAt ?? 0);
  return store.prune(query);
}
