import assert from "node:assert/strict";
import type { StoreLaw } from "./harness.ts";
import { changesNothing, claim, lapse, look, refused, resolve, rival, scene, win, winAgain } from "./requests.ts";

/** Promise 2: what becomes of a claim whose lease is over, or that was given up. */
export const doubtLaws: readonly StoreLaw[] = [
  {
    number: 2,
    name: "an effect whose lease lapsed is in doubt, and no claim takes it over",
    async check(harness) {
      const { store, other, effect } = await scene(harness);
      const request = effect();
      const ref = await lapse(harness, store, request);
      await changesNothing(store, ref.id, async () => {
        const { state, version, attemptId } = await refused(other, rival(request));
        assert.deepEqual([state, attemptId], ["in-doubt", request.attemptId]);
        for (const seen of [version - 1, version, version + 1]) await refused(other, rival(request, { seen }));
      });
    },
  },
  {
    number: 2,
    name: "an effect that its holder abandoned is in doubt at once, and no claim takes it over",
    async check(harness) {
      const { store, other, effect } = await scene(harness);
      const request = effect();
      const ref = await win(store, request);
      await store.abandon(ref, "shutdown");
      const { state, abandoned, version } = await refused(other, rival(request));
      assert.deepEqual([state, abandoned], ["in-doubt", true]);
      await refused(other, rival(request, { seen: version }));
      assert.equal((await look(store, ref.id)).token, 1);
    },
  },
  {
    number: 2,
    name: "a lock of the same key text is another row and gives no right to the effect",
    async check(harness) {
      const { store, other, effect, lock } = await scene(harness);
      const ref = await lapse(harness, store, effect("same"));
      await changesNothing(store, ref.id, async () => {
        assert.equal((await win(other, lock("same"))).token, 1);
        await harness.expireLeases();
        assert.equal((await winAgain(other, lock("same"))).token, 2);
      });
    },
  },
  {
    number: 2,
    name: "a request that calls an effect's row a lock does not take it over",
    async check(harness) {
      const { store, other, effect } = await scene(harness);
      const request = effect();
      const ref = await lapse(harness, store, request);
      await changesNothing(store, ref.id, async () => {
        const { version } = await look(store, ref.id);
        for (const seen of [null, version]) await refused(other, rival(request, { kind: "lock", seen }));
      });
    },
  },
  {
    number: 2,
    name: "a lapsed lock is told as lapsed, and free to a request that names its version",
    async check(harness) {
      const { store, other, lock } = await scene(harness);
      const request = lock();
      await win(store, request);
      assert.equal((await refused(other, rival(request))).state, "claimed");
      await harness.expireLeases();
      const record = await refused(other, rival(request), "free");
      assert.equal(record.state, "lapsed");
      assert.equal((await win(other, rival(request, { seen: record.version }))).token, 2);
      assert.equal((await refused(store, rival(request, { seen: record.version }))).state, "claimed");
    },
  },
  {
    number: 2,
    name: "an abandoned lock is free at once",
    async check(harness) {
      const { store, other, lock } = await scene(harness);
      const request = lock();
      await store.abandon(await win(store, request), "shutdown");
      const record = await refused(other, rival(request), "free");
      assert.deepEqual([record.state, record.abandoned], ["lapsed", true]);
      assert.equal((await win(other, rival(request, { seen: record.version }))).token, 2);
      assert.equal((await look(store, request.id)).abandoned, false);
    },
  },
  {
    number: 2,
    name: "a doubt outlives every later lapse: only a verdict, or its holder, ends it",
    async check(harness) {
      const { store, other, effect } = await scene(harness);
      const request = effect();
      const ref = await lapse(harness, store, request);
      await harness.expireLeases();
      assert.equal((await claim(other, rival(request))).answer, "taken");
      assert.equal(await resolve(other, await look(other, ref.id), "released"), "done");
      assert.equal((await winAgain(other, request)).token, 2);
    },
  },
];
