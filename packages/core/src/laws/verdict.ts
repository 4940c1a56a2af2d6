import assert from "node:assert/strict";
import type { ClaimRecord, Store } from "../store.ts";
import type { StoreLaw } from "./harness.ts";
import {
  changesNothing,
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
  win,
  winAgain,
} from "./requests.ts";

/** Promise 18: which doubt a verdict fits. */
export const verdictLaws: readonly StoreLaw[] = [
  {
    number: 18,
    name: "every renewal, abandonment, settlement, verdict and claim raises the version",
    async check(harness) {
      const { store, other, effect } = await scene(harness);
      const request = effect();
      const versions: number[] = [];
      const step = async (action: () => Promise<unknown>) => {
        await action();
        versions.push((await look(other, request.id)).version);
      };
      let ref = { id: request.id, attemptId: request.attemptId, token: 1 };
      await step(() => win(store, request));
      await step(() => renew(store, ref));
      await step(() => renew(store, ref, 1_000));
      await step(() => store.abandon(ref, "shutdown"));
      await step(async () => resolve(store, await look(store, request.id), "released"));
      await step(() => settle(store, ref, "completed", receipt));
      await step(async () => resolve(store, await look(store, request.id), "failed"));
      await step(async () => resolve(store, await look(store, request.id), "reopened"));
      await step(async () => {
        ref = await winAgain(store, request);
      });
      await step(() => settle(store, ref, "released"));
      const rising = [...new Set(versions)].sort((a, b) => a - b);
      assert.deepEqual(versions, rising);
    },
  },
  {
    number: 18,
    name: "a renewal between a look-up and its verdict makes the verdict refused",
    async check(harness) {
      const { store, other, effect } = await scene(harness);
      const ref = await lapse(harness, store, effect());
      const doubt = await look(other, ref.id);
      assert.equal(await renew(store, ref), "held");
      await harness.expireLeases();
      await refusedVerdict(other, doubt);
      assert.equal(await resolve(other, await look(other, ref.id), "released"), "done");
    },
  },
  {
    number: 18,
    name: "an abandonment between a look-up and its verdict makes the verdict refused",
    async check(harness) {
      const { store, other, effect } = await scene(harness);
      const ref = await lapse(harness, store, effect());
      const doubt = await look(other, ref.id);
      await store.abandon(ref, "shutdown");
      await refusedVerdict(other, doubt);
    },
  },
  {
    number: 18,
    name: "a dispute that arose between a look-up and its verdict makes the verdict refused",
    async check(harness) {
      const { store, other, effect } = await scene(harness);
      const ref = await lapse(harness, store, effect());
      const doubt = await look(other, ref.id);
      await resolve(store, doubt, "released");
      await settle(store, ref, "completed", receipt);
      await refusedVerdict(other, doubt);
    },
  },
  {
    number: 18,
    name: "a verdict does not fit another token's doubt",
    async check(harness) {
      const { store, other, effect } = await scene(harness);
      const request = effect();
      const ref = await lapse(harness, store, request);
      const first = await look(other, ref.id);
      for (const token of [0, 2]) await refusedVerdict(other, { ...first, token });
      await resolve(store, first, "released");
      await winAgain(store, request);
      await harness.expireLeases();
      await refusedVerdict(other, first);
      await refusedVerdict(other, { ...(await look(other, ref.id)), token: 1 });
    },
  },
  {
    number: 18,
    name: "of two verdicts on one doubt, exactly one is done",
    async check(harness) {
      const { store, other, effect } = await scene(harness);
      for (let round = 0; round < 5; round++) {
        const ref = await lapse(harness, store, effect(`order:${round}`));
        const doubt = await look(store, ref.id);
        const answers = await Promise.all([
          resolve(store, doubt, "completed", receipt),
          resolve(other, doubt, "released"),
        ]);
        assert.deepEqual([...answers].sort(), ["done", "refused"]);
        const state = answers[0] === "done" ? "completed" : "released";
        assert.equal((await look(store, ref.id)).state, state);
        assert.deepEqual(await told(store, ref.id), [`verdict-${state}`]);
      }
    },
  },
  {
    number: 18,
    name: "of a late settlement and a verdict at once, the row and the history tell one story",
    async check(harness) {
      const { store, other, effect } = await scene(harness);
      for (let round = 0; round < 10; round++) {
        const ref = await lapse(harness, store, effect(`order:${round}`));
        const doubt = await look(other, ref.id);
        const [said, verdict] = await Promise.all([
          settle(store, ref, "completed", receipt),
          resolve(other, doubt, "released"),
        ]);
        const story = [said, verdict, (await look(store, ref.id)).state, await told(store, ref.id)];
        const verdictFirst = ["disputed", "done", "in-doubt", ["verdict-released", "late-completed"]];
        assert.deepEqual(story, verdict === "done" ? verdictFirst : ["settled", "refused", "completed", []]);
      }
    },
  },
  {
    number: 18,
    name: "a lock takes no verdict",
    async check(harness) {
      const { store, other, lock } = await scene(harness);
      const lapsed = await lapse(harness, store, lock("lapsed"));
      const abandoned = await win(store, lock("abandoned"));
      await store.abandon(abandoned, "shutdown");
      const failed = await win(store, lock("failed"));
      await settle(store, failed, "failed");
      for (const { id } of [lapsed, abandoned, failed]) await refusedVerdict(other, await look(store, id));
    },
  },
  {
    number: 18,
    name: "only what failed can be reopened, and it is then free with a token that goes on",
    async check(harness) {
      const { store, other, effect } = await scene(harness);
      const doubt = await lapse(harness, store, effect("in doubt"));
      assert.equal(await resolve(other, await look(other, doubt.id), "reopened"), "refused");
      for (const state of ["completed", "released"] as const) {
        const ref = await win(store, effect(state));
        await settle(store, ref, state);
        assert.equal(await resolve(other, await look(other, ref.id), "reopened"), "refused");
      }
      const request = effect("failed");
      await settle(store, await win(store, request), "failed", reason);
      await refused(other, rival(request, { seen: (await look(store, request.id)).version }));
      assert.equal(await resolve(other, await look(other, request.id), "reopened"), "done");
      const record = await refused(other, rival(request), "free");
      assert.deepEqual([record.state, record.payload, record.byVerdict], ["released", null, true]);
      assert.equal((await winAgain(other, request)).token, 2);
    },
  },
  {
    number: 18,
    name: "a reopening fits only the failure it was made for",
    async check(harness) {
      const { store, other, effect } = await scene(harness);
      const request = effect();
      await settle(store, await win(store, request), "failed", reason);
      const first = await look(other, request.id);
      await resolve(other, first, "reopened");
      await settle(store, await winAgain(store, request), "failed", reason);
      await changesNothing(store, request.id, async () =>
        assert.equal(await resolve(other, first, "reopened"), "refused"),
      );
    },
  },
  {
    number: 18,
    name: "a renewal between a look-up and its takeover leaves the lock with its holder",
    async check(harness) {
      const { store, other, lock } = await scene(harness);
      const request = lock();
      const ref = await lapse(harness, store, request);
      const { version: seen } = await look(other, ref.id);
      assert.equal(await renew(store, ref), "held");
      await refused(other, rival(request, { seen }));
      await harness.expireLeases();
      await refused(other, rival(request, { seen }), "free");
      assert.equal(await renew(store, ref), "held");
    },
  },
  {
    number: 18,
    name: "a verdict on a key without a row is refused",
    async check(harness) {
      const { store, effect } = await scene(harness);
      const { id } = effect();
      assert.equal(await resolve(store, { id, token: 1, version: 1 }, "completed"), "refused");
      assert.deepEqual([await store.get([id]), await store.history(id)], [[null], []]);
    },
  },
];

async function refusedVerdict(store: Store, doubt: ClaimRecord): Promise<void> {
  await changesNothing(store, doubt.id, async () => {
    for (const state of [...settledStates, "reopened"] as const)
      assert.equal(await resolve(store, doubt, state, receipt), "refused");
  });
}
