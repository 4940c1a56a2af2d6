import assert from "node:assert/strict";
import type { StoreLaw } from "./harness.ts";
import { claim, lapse, look, renew, rival, scene, settle, win } from "./requests.ts";

/** Promise 1: who wins a key. */
export const claimLaws: readonly StoreLaw[] = [
  {
    number: 1,
    name: "of many connections that claim one key at once, exactly one wins",
    async check(harness) {
      const { store, effect } = await scene(harness);
      const stores = await Promise.all([1, 2, 3, 4].map(() => harness.connect()));
      for (let round = 0; round < 5; round++) {
        const request = effect(`order:${round}`);
        const results = await Promise.all([...stores, ...stores].map((each) => claim(each, rival(request))));
        assert.equal(results.filter((result) => result.answer === "won").length, 1);
        const { attemptId, token } = await look(store, request.id);
        assert.equal(token, 1);
        for (const result of results)
          if (result.answer !== "won") assert.equal(result.answer === "taken" && result.record.attemptId, attemptId);
      }
    },
  },
  {
    number: 1,
    name: "of many batches that name the same keys in different orders, each key has exactly one winner",
    async check(harness) {
      const { store, effect } = await scene(harness);
      const stores = await Promise.all([1, 2, 3, 4].map(() => harness.connect()));
      const requests = Array.from({ length: 8 }, (_, index) => effect(`order:${index}`));
      const batches = stores.map((_, shift) => {
        const batch = requests.map((request) => rival(request));
        return shift % 2 === 0 ? batch : batch.reverse();
      });
      const answers = await Promise.all(stores.map((each, index) => each.claim(batches[index] ?? [])));
      for (const { id } of requests) {
        const winners = batches.flatMap((batch, index) => {
          const place = batch.findIndex((request) => request.id === id);
          return answers[index]?.[place]?.answer === "won" ? [batch[place]?.attemptId] : [];
        });
        assert.deepEqual(winners, [(await look(store, id)).attemptId]);
      }
    },
  },
  {
    number: 1,
    name: "of all who claim a released key at once, exactly one wins the next token",
    async check(harness) {
      const { store, effect } = await scene(harness);
      const stores = await Promise.all([1, 2, 3, 4].map(() => harness.connect()));
      const request = effect();
      let held = await win(store, request);
      for (let token = 2; token < 6; token++) {
        assert.equal(await settle(store, held, "released"), "settled");
        const { version: seen } = await look(store, request.id);
        const rivals = stores.map(() => rival(request, { seen }));
        const results = await Promise.all(stores.map((each, index) => claim(each, rivals[index] ?? request)));
        const winners = rivals.filter((_, index) => results[index]?.answer === "won");
        held = { id: request.id, attemptId: winners[0]?.attemptId ?? "", token };
        assert.equal(winners.length, 1);
        assert.equal(await renew(store, held), "held");
      }
    },
  },
  {
    number: 1,
    name: "of all who take a lapsed lock over at once, exactly one wins the next token",
    async check(harness) {
      const { store, lock } = await scene(harness);
      const stores = await Promise.all([1, 2, 3, 4].map(() => harness.connect()));
      const request = lock();
      await lapse(harness, store, request);
      const { version: seen } = await look(store, request.id);
      const results = await Promise.all(stores.map((each) => claim(each, rival(request, { seen }))));
      assert.deepEqual(
        results.filter((result) => result.answer === "won"),
        [{ answer: "won", token: 2 }],
      );
    },
  },
];
