import assert from "node:assert/strict";
import { randomId } from "../id.ts";
import type { DoubtRef, Store, StoredVerdict } from "../store.ts";
import type { StoreLaw } from "./harness.ts";
import {
  askToStop,
  changesNothing,
  decision,
  look,
  refused,
  renew,
  scene,
  settle,
  settledStates,
  told,
  unlock,
  win,
  winAgain,
} from "./requests.ts";

/** Requests to stop and unlocks as verdicts: what they fit, how often they count, and what stays of them. */
export const stopVerdictLaws: readonly StoreLaw[] = [
  {
    number: 13,
    name: "a request to stop, or an unlock, that is repeated answers already, and stands in the history once",
    async check(harness) {
      const { store, other, lock } = await scene(harness);
      for (const verdict of verdicts()) {
        const ref = await win(store, lock(verdict.state));
        const [held, by] = [await look(other, ref.id), decision()];
        assert.equal(await other.resolve(held, verdict, by), "done");
        for (const each of [store, other])
          await changesNothing(store, ref.id, async () =>
            assert.equal(await each.resolve(held, verdict, by), "already"),
          );
        assert.deepEqual(await told(store, ref.id), [verdict.state]);
      }
    },
  },
  {
    number: 13,
    name: "a request to stop, or an unlock, that is repeated late does nothing to the next holder",
    async check(harness) {
      const { store, other, lock } = await scene(harness);
      for (const verdict of verdicts()) {
        const request = lock(verdict.state);
        const ref = await win(store, request);
        const [held, by] = [await look(other, ref.id), decision()];
        assert.equal(await other.resolve(held, verdict, by), "done");
        await settle(store, ref, "released");
        const next = await winAgain(store, request);
        await changesNothing(store, ref.id, async () => {
          assert.equal(await other.resolve(held, verdict, by), "already");
          assert.equal(await other.resolve(await look(other, ref.id), verdict, by), "refused");
          assert.equal(await other.resolve(held, verdict, decision()), "refused");
        });
        assert.equal(await renew(store, next), "held");
      }
    },
  },
  {
    number: 13,
    name: "a request to stop, or an unlock, that arrives twice at once is done once",
    async check(harness) {
      const { store, other, lock } = await scene(harness);
      for (let round = 0; round < 5; round++)
        for (const verdict of verdicts()) {
          const ref = await win(store, lock(`${verdict.state}:${round}`));
          const [held, by] = [await look(other, ref.id), decision()];
          const answers = await Promise.all([store, other].map((each) => each.resolve(held, verdict, by)));
          assert.deepEqual(answers.sort(), ["already", "done"]);
          assert.deepEqual(await told(store, ref.id), [verdict.state]);
        }
    },
  },
  {
    number: 13,
    name: "a decision id that asked a holder to stop takes no lock away, and the other way round",
    async check(harness) {
      const { store, other, lock } = await scene(harness);
      for (const [first, second] of [verdicts(), verdicts().reverse()]) {
        assert.ok(first && second);
        const request = lock(first.state);
        const ref = await win(store, request);
        const [held, by] = [await look(other, ref.id), decision()];
        assert.equal(await other.resolve(held, first, by), "done");
        await changesNothing(store, ref.id, async () => {
          for (const each of [held, await look(other, ref.id)])
            assert.equal(await other.resolve(each, second, by), "refused");
        });
      }
    },
  },
  {
    number: 13,
    name: "a claim whose lock was taken away since is answered when it comes again, and not granted",
    async check(harness) {
      const { store, other, lock } = await scene(harness);
      const request = lock();
      const attemptId = randomId();
      await win(store, request);
      assert.equal(await unlock(other, await look(other, request.id), decision(), attemptId), "done");
      await changesNothing(store, request.id, async () => {
        await refused(store, request, "free");
        for (const seen of [null, (await look(store, request.id)).version])
          await refused(store, { ...request, attemptId, seen });
      });
    },
  },
  {
    number: 15,
    name: "a request to stop and an unlock are in the history with who, why, evidence, decision, token and moment",
    async check(harness) {
      const { store, other, lock } = await scene(harness);
      const request = lock();
      await win(store, request);
      const before = (await store.health()).now;
      const said = [];
      for (const verdict of verdicts()) {
        const by = decision({ why: `${verdict.state}: stuck`, evidence: "ticket 77" });
        assert.equal(await other.resolve(await look(other, request.id), verdict, by), "done");
        said.push({ ...by, what: verdict.state, token: 1, attemptId: null, payload: null, at: 0 });
      }
      const history = await store.history(request.id);
      assert.deepEqual(
        history.map((entry) => ({ ...entry, at: 0 })),
        said,
      );
      const after = (await store.health()).now;
      for (const { at } of history) assert.ok(at >= before && at <= after);
      await winAgain(store, request);
      await askToStop(other, await look(other, request.id));
      assert.deepEqual(
        (await store.history(request.id)).map(({ what, token }) => [what, token]),
        [
          ["cancel-requested", 1],
          ["unlocked", 1],
          ["cancel-requested", 3],
        ],
      );
    },
  },
  {
    number: 18,
    name: "a request to stop, or an unlock, fits the lock as it was read: another token or version is refused",
    async check(harness) {
      const { store, other, lock } = await scene(harness);
      const request = lock();
      const ref = await win(store, request);
      const held = await look(other, ref.id);
      const wrong = [-1, 1].flatMap((by) => [
        { ...held, token: held.token + by },
        { ...held, version: held.version + by },
      ]);
      for (const each of wrong) await refusedBoth(other, each);
      for (const write of [() => renew(store, ref), () => store.abandon(ref, "shutdown")]) {
        const read = await look(other, ref.id);
        await write();
        await refusedBoth(other, read);
      }
      await winAgain(other, request);
      await refusedBoth(other, held);
      assert.equal(await unlock(other, await look(other, ref.id)), "done");
    },
  },
  {
    number: 18,
    name: "nobody is asked to release, and nothing is taken, where nobody holds the lock",
    async check(harness) {
      const { store, other, lock } = await scene(harness);
      for (const state of settledStates) {
        const request = lock(state);
        await settle(store, await win(store, request), state);
        await refusedBoth(other, await look(other, request.id));
      }
      const request = lock("unlocked");
      await win(store, request);
      await unlock(other, await look(other, request.id));
      await refusedBoth(other, await look(other, request.id));
      const { id } = lock("never held");
      for (const verdict of verdicts())
        assert.equal(await other.resolve({ id, token: 1, version: 1 }, verdict, decision()), "refused");
      assert.deepEqual([await store.get([id]), await store.history(id)], [[null], []]);
    },
  },
  {
    number: 18,
    name: "an effect can neither be unlocked nor be asked to stop, in any state",
    async check(harness) {
      const { store, other, effect } = await scene(harness);
      const living = await win(store, effect("living"));
      await refusedBoth(other, await look(other, living.id));
      await harness.expireLeases();
      await refusedBoth(other, await look(other, living.id));
      for (const state of settledStates) {
        const ref = await win(store, effect(state));
        await settle(store, ref, state);
        await refusedBoth(other, await look(other, ref.id));
      }
    },
  },
  {
    number: 18,
    name: "of a release and an unlock at once, exactly one ends the claim",
    async check(harness) {
      const { store, other, lock } = await scene(harness);
      for (let round = 0; round < 10; round++) {
        const ref = await win(store, lock(`thread:${round}`));
        const held = await look(other, ref.id);
        const early = round % 2 ? unlock(other, held) : undefined;
        const [said, verdict] = await Promise.all([settle(store, ref, "released"), early ?? unlock(other, held)]);
        const { token, byVerdict } = await look(store, ref.id);
        const story = [said, verdict, token, byVerdict, await told(store, ref.id)];
        const unlocked = ["lost", "done", 2, true, ["unlocked"]];
        assert.deepEqual(story, verdict === "done" ? unlocked : ["settled", "refused", 1, false, []]);
      }
    },
  },
  {
    number: 18,
    name: "of a renewal and an unlock at once, exactly one is heard",
    async check(harness) {
      const { store, other, lock } = await scene(harness);
      for (let round = 0; round < 10; round++) {
        const ref = await win(store, lock(`thread:${round}`));
        const held = await look(other, ref.id);
        const early = round % 2 ? unlock(other, held) : undefined;
        const [said, verdict] = await Promise.all([renew(store, ref), early ?? unlock(other, held)]);
        const { state } = await look(store, ref.id);
        // Blocked by the unlock it may be told to ask again.
        const heard = said === "busy" ? await renew(store, ref) : said;
        assert.deepEqual(
          [heard, verdict, state],
          verdict === "done" ? ["lost", "done", "released"] : ["held", "refused", "claimed"],
        );
      }
    },
  },
];

function verdicts(): StoredVerdict[] {
  return [{ state: "cancel-requested" }, { state: "unlocked", attemptId: randomId() }];
}

async function refusedBoth(store: Store, { id, token, version }: DoubtRef): Promise<void> {
  await changesNothing(store, id, async () => {
    for (const verdict of verdicts())
      assert.equal(await store.resolve({ id, token, version }, verdict, decision()), "refused");
  });
}
