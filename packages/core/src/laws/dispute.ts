import assert from "node:assert/strict";
import type { StoreLaw } from "./harness.ts";
import {
  changesNothing,
  decided,
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
} from "./requests.ts";

/** Promise 4: a late "completed" that meets a "not done" verdict. */
export const disputeLaws: readonly StoreLaw[] = [
  {
    number: 4,
    name: "a late completed that meets a not-done verdict puts the effect back in doubt and is kept in the history",
    async check(harness) {
      const { store, other, effect } = await scene(harness);
      for (const state of ["released", "failed"] as const) {
        const request = effect(state);
        const ref = await decided(harness, other, request, state, reason);
        const before = await look(other, ref.id);
        assert.equal(await settle(store, ref, "completed", receipt), "disputed");
        const record = await refused(other, rival(request, { seen: before.version }));
        const { disputed, byVerdict, settledAt, payload, token } = record;
        assert.equal(record.state, "in-doubt");
        assert.deepEqual(
          { disputed, byVerdict, settledAt, payload, token },
          {
            disputed: true,
            byVerdict: false,
            settledAt: null,
            payload: null,
            token: 1,
          },
        );
        assert.ok(record.version > before.version);
        await refused(other, rival(request, { seen: record.version }));
        const [verdict, late] = await store.history(ref.id);
        assert.equal(verdict?.what, `verdict-${state}`);
        assert.deepEqual([late?.what, late?.payload, late?.token], ["late-completed", receipt, 1]);
        assert.equal(late?.attemptId, ref.attemptId);
      }
    },
  },
  {
    number: 4,
    name: "a late completed that meets a reopening puts the effect back in doubt",
    async check(harness) {
      const { store, other, effect } = await scene(harness);
      const ref = await decided(harness, other, effect(), "failed", reason);
      assert.equal(await resolve(other, await look(other, ref.id), "reopened"), "done");
      assert.equal(await settle(store, ref, "completed", receipt), "disputed");
      assert.equal((await look(store, ref.id)).state, "in-doubt");
    },
  },
  {
    number: 4,
    name: "the same contradiction again is disputed again, and stands in the history once",
    async check(harness) {
      const { store, other, effect } = await scene(harness);
      const ref = await decided(harness, other, effect(), "released");
      assert.equal(await settle(store, ref, "completed", receipt), "disputed");
      for (const each of [store, other])
        await changesNothing(store, ref.id, async () =>
          assert.equal(await settle(each, ref, "completed", receipt), "disputed"),
        );
      assert.deepEqual(await told(store, ref.id), ["verdict-released", "late-completed"]);
    },
  },
  {
    number: 4,
    name: "a contradiction is kept in the history also when its holder said something else before",
    async check(harness) {
      const { store, other, effect } = await scene(harness);
      const ref = await decided(harness, other, effect(), "released");
      for (const each of [store, other]) assert.equal(await settle(each, ref, "failed", reason), "lost");
      assert.equal(await settle(store, ref, "completed", receipt), "disputed");
      assert.deepEqual(await told(store, ref.id), ["verdict-released", "late-failed", "late-completed"]);
    },
  },
  {
    number: 4,
    name: "the holder can neither settle nor renew a disputed effect",
    async check(harness) {
      const { store, other, effect } = await scene(harness);
      const ref = await decided(harness, other, effect(), "released");
      await settle(store, ref, "completed", receipt);
      await changesNothing(store, ref.id, async () => {
        assert.equal(await settle(store, ref, "released"), "lost");
        assert.equal(await settle(store, ref, "failed", reason), "lost");
        assert.equal(await renew(store, ref), "lost");
        await store.abandon(ref, "shutdown");
      });
    },
  },
  {
    number: 4,
    name: "a new verdict ends a dispute",
    async check(harness) {
      const { store, other, effect } = await scene(harness);
      for (const state of settledStates) {
        const request = effect(state);
        const ref = await decided(harness, other, request, "released");
        await settle(store, ref, "completed", receipt);
        assert.equal(await resolve(other, await look(other, ref.id), state, reason), "done");
        const record = await look(store, ref.id);
        assert.deepEqual([record.state, record.payload], [state, reason]);
        assert.deepEqual([record.disputed, record.byVerdict], [false, true]);
        assert.deepEqual(await told(store, ref.id), ["verdict-released", "late-completed", `verdict-${state}`]);
      }
    },
  },
  {
    number: 4,
    name: "the late completed of a dispute that a verdict has ended does not open it again",
    async check(harness) {
      const { store, other, effect } = await scene(harness);
      for (const state of ["released", "failed"] as const) {
        const ref = await decided(harness, other, effect(state), "released");
        await settle(store, ref, "completed", receipt);
        assert.equal(await resolve(other, await look(other, ref.id), state, reason), "done");
        await changesNothing(store, ref.id, async () =>
          assert.equal(await settle(store, ref, "completed", receipt), "disputed"),
        );
      }
    },
  },
];
