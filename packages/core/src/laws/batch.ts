import assert from "node:assert/strict";
import { randomId } from "../id.ts";
import type { StoreLaw } from "./harness.ts";
import { facts, look, receipt, refused, renew, rival, scene, settle, win } from "./requests.ts";

/** Promise 16: each item of a batch fares as if it were alone. */
export const batchLaws: readonly StoreLaw[] = [
  {
    number: 16,
    name: "a mixed batch of claims answers item by item: won, taken, free and fenced",
    async check(harness) {
      const { store, other, effect, lock } = await scene(harness);
      const [fence, lost] = [await win(store, lock("mine")), await win(store, lock("lost"))];
      await settle(store, lost, "released");
      await settle(store, await win(store, effect("done")), "completed", receipt);
      await win(store, effect("living"));
      await settle(store, await win(store, effect("free")), "released");
      await settle(store, await win(store, effect("again")), "released");
      const repeated = effect("repeated");
      await win(store, repeated);
      const { version: seen } = await look(store, effect("again").id);
      const results = await other.claim([
        effect("new"),
        effect("under the lost run", { fence: lost }),
        effect("done"),
        effect("free"),
        repeated,
        effect("under the run", { fence }),
        effect("living", { fence: lost }),
        effect("again", { seen, fence }),
      ]);
      const answers = results.map((result) => (result.answer === "won" ? `won ${result.token}` : result.answer));
      assert.deepEqual(answers, ["won 1", "fenced", "taken", "free", "won 1", "won 1", "taken", "won 2"]);
      for (const [index, key] of [
        [2, "done"],
        [3, "free"],
        [6, "living"],
      ] as const) {
        const result = results[index];
        assert.ok(result?.answer === "taken" || result?.answer === "free");
        assert.deepEqual(facts(result.record), facts(await look(store, effect(key).id)));
      }
      assert.deepEqual(await store.get([effect("under the lost run").id]), [null]);
    },
  },
  {
    number: 16,
    name: "a mixed batch of locks answers item by item",
    async check(harness) {
      const { store, other, lock } = await scene(harness);
      await win(store, lock("lapsed"));
      await harness.expireLeases();
      await win(store, lock("held"));
      const { version: seen } = await look(store, lock("lapsed").id);
      const results = await other.claim([lock("held"), lock("lapsed", { seen }), lock("new")]);
      assert.deepEqual(
        results.map((result) => (result.answer === "won" ? result.token : result.answer)),
        ["taken", 2, 1],
      );
    },
  },
  {
    number: 16,
    name: "a mixed batch of renewals answers item by item",
    async check(harness) {
      const { store, other, effect } = await scene(harness);
      const [living, settled, abandoned, foreign, later, next] = await Promise.all(
        ["living", "settled", "abandoned", "foreign attempt", "foreign token", "next"].map((key) =>
          win(store, effect(key)),
        ),
      );
      assert.ok(living && settled && abandoned && foreign && later && next);
      await settle(store, settled, "completed");
      await store.abandon(abandoned, "shutdown");
      const longer = 1_200_000;
      const refs = [settled, living, { ...foreign, attemptId: randomId() }, abandoned, { ...later, token: 2 }, next];
      const answers = await other.renew(refs.map((ref) => ({ ...ref, leaseMs: longer })));
      assert.deepEqual(answers, ["lost", "held", "lost", "lost", "lost", "held"]);
      assert.equal((await look(store, living.id)).leaseMs, longer);
      for (const ref of [foreign, later]) {
        assert.notEqual((await look(store, ref.id)).leaseMs, longer);
        assert.equal(await renew(store, ref), "held");
      }
    },
  },
  {
    number: 16,
    name: "a mixed batch of settlements answers item by item",
    async check(harness) {
      const { store, other, effect, lock } = await scene(harness);
      const [done, foreign, first, second] = await Promise.all(
        ["done", "foreign", "first", "second"].map((key) => win(store, effect(key))),
      );
      const run = await win(store, lock());
      assert.ok(done && foreign && first && second);
      await settle(store, done, "completed", receipt);
      const answers = await other.settle([
        { ...second, state: "failed", payload: null },
        { ...foreign, attemptId: randomId(), state: "completed", payload: receipt },
        { ...done, state: "completed", payload: receipt },
        { ...first, state: "completed", payload: receipt },
        { ...run, state: "released", payload: null },
      ]);
      assert.deepEqual(answers, ["settled", "lost", "already", "settled", "settled"]);
      const states = (await store.get([second, foreign, done, first, run].map(({ id }) => id))).map(
        (record) => record?.state,
      );
      assert.deepEqual(states, ["failed", "claimed", "completed", "completed", "released"]);
    },
  },
  {
    number: 16,
    name: "a batch of a hundred is answered in its order",
    async check(harness) {
      const { store, effect } = await scene(harness);
      const requests = Array.from({ length: 100 }, (_, index) => effect(`order:${index}`));
      const odd = requests.filter((_, index) => index % 2 === 1);
      assert.equal((await store.claim(odd)).length, 50);
      const answers = (await store.claim(requests.map((request) => rival(request)))).map((result) => result.answer);
      assert.deepEqual(
        answers,
        requests.map((_, index) => (index % 2 === 1 ? "taken" : "won")),
      );
      const claims = requests.map(({ id, attemptId }) => ({ id, attemptId, token: 1 }));
      const settlements = claims.map((ref, index) => ({
        ...ref,
        state: "completed" as const,
        payload: { format: "json", text: String(index) },
      }));
      assert.deepEqual(
        await store.settle(settlements),
        requests.map((_, index) => (index % 2 === 1 ? "settled" : "lost")),
      );
      for (const [index, request] of odd.entries())
        assert.equal((await refused(store, rival(request))).payload?.text, String(2 * index + 1));
    },
  },
  {
    number: 16,
    name: "an empty batch is answered with nothing",
    async check(harness) {
      const { store } = await scene(harness);
      assert.deepEqual(await store.claim([]), []);
      assert.deepEqual(await store.renew([]), []);
      assert.deepEqual(await store.settle([]), []);
      assert.deepEqual(await store.get([]), []);
    },
  },
];
