import assert from "node:assert/strict";
import { randomId } from "../id.ts";
import type { StoreLaw } from "./harness.ts";
import {
  askToStop,
  changesNothing,
  claim,
  decision,
  lapse,
  look,
  receipt,
  refused,
  renew,
  rival,
  scene,
  settle,
  settledStates,
  unlock,
  win,
  winAgain,
} from "./requests.ts";

/** What others may do to the holder of a lock: ask it to stop, or take the lock away. */
export const stopLaws: readonly StoreLaw[] = [
  {
    number: 5,
    name: "a holder that is asked to stop is told so by every renewal, and holds its lock until it releases it",
    async check(harness) {
      const { store, other, lock } = await scene(harness);
      const request = lock();
      const ref = await win(store, request);
      assert.equal(await renew(store, ref), "held");
      const before = await look(other, ref.id);
      assert.equal(await askToStop(other, before), "done");
      const asked = await look(store, ref.id);
      assert.deepEqual([asked.state, asked.token, asked.cancelRequested], ["claimed", ref.token, true]);
      assert.equal(asked.leaseUntil, before.leaseUntil);
      for (const each of [store, other]) assert.equal(await renew(each, ref, 1_200_000), "cancel-requested");
      assert.ok((await look(store, ref.id)).leaseUntil > before.leaseUntil);
      await refused(other, rival(request, { seen: (await look(other, ref.id)).version }));
      assert.equal(await settle(store, ref, "released"), "settled");
      const { state, byVerdict } = await look(other, ref.id);
      assert.deepEqual([state, byVerdict], ["released", false]);
    },
  },
  {
    number: 5,
    name: "a request to stop is for one claim of the lock: the next one has none",
    async check(harness) {
      const { store, other, lock } = await scene(harness);
      for (const end of ["released", "lapsed", "unlocked"]) {
        const request = lock(end);
        const ref = await win(store, request);
        assert.equal(await askToStop(other, await look(other, ref.id)), "done");
        if (end === "released") await settle(store, ref, "released");
        if (end === "lapsed") await harness.expireLeases();
        if (end === "unlocked") await unlock(other, await look(other, ref.id));
        const next = await winAgain(other, request);
        assert.equal((await look(store, ref.id)).cancelRequested, false);
        assert.equal(await renew(other, next), "held");
      }
    },
  },
  {
    number: 5,
    name: "a holder whose lease is over can be asked to stop, and hears of it when it comes back",
    async check(harness) {
      const { store, other, lock } = await scene(harness);
      const ref = await lapse(harness, store, lock());
      assert.equal(await askToStop(other, await look(other, ref.id)), "done");
      assert.equal((await look(other, ref.id)).state, "lapsed");
      assert.equal(await renew(store, ref), "cancel-requested");
      assert.equal((await look(other, ref.id)).state, "claimed");
    },
  },
  {
    number: 5,
    name: "a lock can be taken from its holder, alive or not, and is free for the next claim that names its version",
    async check(harness) {
      const { store, other, lock } = await scene(harness);
      const [lapsed, abandoned, asked, living] = ["lapsed", "abandoned", "asked", "living"].map((key) => lock(key));
      assert.ok(lapsed && abandoned && asked && living);
      await lapse(harness, store, lapsed);
      await store.abandon(await win(store, abandoned), "shutdown");
      await win(store, asked);
      await askToStop(other, await look(other, asked.id));
      await win(store, living);
      for (const request of [lapsed, abandoned, asked, living]) {
        const before = await look(other, request.id);
        const attemptId = randomId();
        const start = (await store.health()).now;
        assert.equal(await unlock(other, before, decision(), attemptId), "done");
        const record = await refused(store, rival(request), "free");
        const { settledAt, version, readAt } = record;
        assert.ok(settledAt !== null && settledAt >= start && settledAt <= readAt && version > before.version);
        const change = { state: "released", attemptId, token: 2, version, settledAt, readAt, byVerdict: true };
        const clear = { abandoned: false, cancelRequested: false, payload: null };
        assert.deepEqual({ ...record }, { ...before, ...change, ...clear });
        assert.equal((await win(store, rival(request, { seen: version }))).token, 3);
      }
    },
  },
  {
    number: 5,
    name: "what a run did under a lock that was taken from it stays its own",
    async check(harness) {
      const { store, other, effect, lock } = await scene(harness);
      const fence = await win(store, lock());
      const under = await win(store, effect("order:1", { fence }));
      await changesNothing(other, under.id, async () =>
        assert.equal(await unlock(other, await look(other, fence.id)), "done"),
      );
      assert.equal(await renew(store, under), "held");
      assert.equal(await settle(store, under, "completed", receipt), "settled");
    },
  },
  {
    number: 3,
    name: "whose lock was taken away can neither renew, settle nor abandon it, before and after the next claim",
    async check(harness) {
      const { store, other, lock } = await scene(harness);
      const request = lock();
      const old = await win(store, request);
      const attemptId = randomId();
      await unlock(other, await look(other, old.id), decision(), attemptId);
      const inVain = () =>
        changesNothing(other, old.id, async () => {
          for (const ref of [old, { ...old, token: 2 }, { ...old, attemptId, token: 2 }]) {
            assert.equal(await renew(store, ref), "lost");
            await store.abandon(ref, "shutdown");
          }
          for (const state of settledStates) assert.equal(await settle(store, old, state, receipt), "lost");
        });
      await inVain();
      const next = await winAgain(other, request);
      assert.equal(next.token, 3);
      await inVain();
      assert.equal(await renew(other, next), "held");
    },
  },
  {
    number: 14,
    name: "a run that was asked to stop still holds its lock: what it claims under it is granted",
    async check(harness) {
      const { store, other, effect, lock } = await scene(harness);
      const fence = await win(store, lock());
      await askToStop(other, await look(other, fence.id));
      await win(store, effect("order:1", { fence }));
    },
  },
  {
    number: 14,
    name: "a claim under a lock that was taken away is refused, under its new token too",
    async check(harness) {
      const { store, other, effect, lock } = await scene(harness);
      const fence = await win(store, lock());
      const attemptId = randomId();
      await unlock(other, await look(other, fence.id), decision(), attemptId);
      for (const each of [fence, { ...fence, token: 2 }, { ...fence, attemptId, token: 2 }]) {
        const result = await claim(store, effect("order:1", { fence: each }));
        assert.ok(result.answer === "fenced");
        assert.deepEqual([result.record?.state, result.record?.token], ["released", 2]);
      }
      assert.deepEqual(await store.get([effect("order:1").id]), [null]);
    },
  },
  {
    number: 14,
    name: "of an unlock and a claim under the old run at once, the claim is refused if the unlock came first",
    async check(harness) {
      const { store, other, effect, lock } = await scene(harness);
      for (let round = 0; round < 10; round++) {
        const fence = await win(store, lock(`thread:${round}`));
        const before = await look(store, fence.id);
        const [taken, late] = await Promise.all([
          unlock(other, before),
          claim(store, effect(`order:${round}`, { fence })),
        ]);
        assert.equal(taken, "done");
        assert.ok(late.answer === "won" || late.answer === "fenced");
        assert.equal((await claim(store, effect(`later:${round}`, { fence }))).answer, "fenced");
      }
    },
  },
];
