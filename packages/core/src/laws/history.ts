import assert from "node:assert/strict";
import type { HistoryEntry } from "../store.ts";
import type { StoreLaw } from "./harness.ts";
import {
  decided,
  decision,
  lapse,
  look,
  reason,
  receipt,
  resolve,
  scene,
  settle,
  settledStates,
  win,
  winAgain,
} from "./requests.ts";

/** Promise 15: what stays of a verdict, and of what a holder said. */
export const historyLaws: readonly StoreLaw[] = [
  {
    number: 15,
    name: "a verdict is in the history with who, why, evidence, decision, payload, token and moment",
    async check(harness) {
      const { store, other, effect } = await scene(harness);
      for (const state of settledStates) {
        const ref = await lapse(harness, store, effect(state));
        const by = decision({ who: "ana@example.com", why: `the bank says ${state}`, evidence: "ticket 77" });
        const before = (await store.health()).now;
        assert.equal(await resolve(other, await look(other, ref.id), state, receipt, by), "done");
        const [entry, ...more] = await store.history(ref.id);
        assert.deepEqual(more, []);
        const expected = { ...by, what: `verdict-${state}`, token: 1, attemptId: null, payload: receipt };
        assert.deepEqual({ ...entry, at: 0 }, { ...expected, at: 0 });
        assert.ok(entry && entry.at >= before && entry.at <= (await store.health()).now);
        const record = await look(store, ref.id);
        assert.deepEqual([record.state, record.payload, record.byVerdict], [state, receipt, true]);
        assert.ok(record.settledAt !== null && record.settledAt >= before);
      }
    },
  },
  {
    number: 15,
    name: "what a holder says beside its settlement is in the history with its attempt and its reason",
    async check(harness) {
      const { store, other, effect } = await scene(harness);
      const request = effect();
      const ref = await win(store, request);
      await store.abandon(ref, "the response timed out");
      await resolve(other, await look(other, ref.id), "released");
      await settle(store, ref, "completed", receipt);
      const [abandoned, , late] = await store.history(ref.id);
      const nothing = { evidence: null, decisionId: null };
      const said = { token: 1, attemptId: request.attemptId, ...nothing };
      const given = { what: "abandoned", who: request.holder, why: "the response timed out", payload: null };
      assert.deepEqual({ ...abandoned, at: 0 }, { ...said, ...given, at: 0 });
      const came = { what: "late-completed", who: null, why: null, payload: receipt };
      assert.deepEqual({ ...late, at: 0 }, { ...said, ...came, at: 0 });
    },
  },
  {
    number: 15,
    name: "the history of a key is told in order, over all its claims",
    async check(harness) {
      const { store, other, effect } = await scene(harness);
      const request = effect();
      await decided(harness, store, request, "released");
      const second = await winAgain(other, request);
      await other.abandon(second, "shutdown");
      await resolve(store, await look(store, request.id), "failed", reason);
      await resolve(store, await look(store, request.id), "reopened");
      const third = await winAgain(store, request);
      await settle(store, third, "completed", receipt);
      const history = await other.history(request.id);
      assert.deepEqual(history.map(brief), [
        ["verdict-released", 1],
        ["abandoned", 2],
        ["verdict-failed", 2],
        ["reopened", 2],
      ]);
      for (const [index, entry] of history.entries()) assert.ok(entry.at >= (history[index - 1]?.at ?? 0));
    },
  },
  {
    number: 15,
    name: "a verdict that is refused leaves nothing in the history",
    async check(harness) {
      const { store, other, effect } = await scene(harness);
      const ref = await lapse(harness, store, effect());
      const doubt = await look(store, ref.id);
      for (const stale of [
        { ...doubt, version: doubt.version + 1 },
        { ...doubt, token: 2 },
      ])
        assert.equal(await resolve(other, stale, "released"), "refused");
      assert.deepEqual(await store.history(ref.id), []);
    },
  },
];

function brief({ what, token }: HistoryEntry): readonly unknown[] {
  return [what, token];
}
