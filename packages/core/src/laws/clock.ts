import assert from "node:assert/strict";
import { judgeClaim } from "../machine.ts";
import type { ClaimRecord, ClaimResult } from "../store.ts";
import type { StoreLaw } from "./harness.ts";
import {
  claim,
  facts,
  lapse,
  leaseMs,
  look,
  receipt,
  refused,
  renew,
  rival,
  scene,
  settle,
  settledStates,
  win,
  winAgain,
} from "./requests.ts";

/** Promises 11 and 12: leases by the store's clock, and refusals that carry the record. */
export const clockLaws: readonly StoreLaw[] = [
  {
    number: 11,
    name: "a lease runs from now by the store's clock, and every moment on a row is that clock's",
    async check(harness) {
      const { store, other, effect, lock } = await scene(harness);
      const before = (await store.health()).now;
      for (const request of [effect(), lock()]) {
        const ref = await win(store, request);
        const record = await refused(other, rival(request));
        const after = (await other.health()).now;
        const left = record.leaseUntil - record.readAt;
        assert.ok(left > 0 && left <= leaseMs, `${left} ms are left of ${leaseMs}`);
        assert.ok(record.leaseUntil >= before + leaseMs);
        for (const moment of [record.createdAt, record.claimedAt, record.readAt]) within(moment, before, after);
        await settle(store, ref, "released");
        within((await look(store, ref.id)).settledAt ?? 0, before, (await store.health()).now);
      }
    },
  },
  {
    number: 11,
    name: "a new claim and a renewal count anew from the store's clock; the time of creation stays",
    async check(harness) {
      const { store, lock } = await scene(harness);
      const request = lock();
      await lapse(harness, store, request);
      const { createdAt } = await look(store, request.id);
      const before = (await store.health()).now;
      const ref = await winAgain(store, request);
      for (const step of ["claimed", "renewed"]) {
        if (step === "renewed") assert.equal(await renew(store, ref), "held");
        const record = await look(store, request.id);
        assert.equal(record.createdAt, createdAt);
        assert.ok(record.claimedAt >= before);
        assert.ok(record.leaseUntil >= before + leaseMs);
        assert.ok(record.leaseUntil - record.readAt <= leaseMs);
      }
    },
  },
  {
    number: 11,
    name: "the holder's name is never compared",
    async check(harness) {
      const { store, other, effect } = await scene(harness);
      const request = effect();
      const ref = await win(store, request);
      await refused(other, rival(request, { holder: request.holder }));
      assert.equal((await claim(other, { ...request, holder: "renamed" })).answer, "won");
      assert.equal((await look(store, ref.id)).holder, request.holder);
    },
  },
  {
    number: 12,
    name: "a refusal carries the whole record, in every field",
    async check(harness) {
      const { store, other, effect } = await scene(harness);
      const named = { name: "charge", scope: "thread-7", turn: "turn-3", runId: "run-9", holder: "host:12:ab" };
      const request = effect("order:1", { ...named, leaseMs: 120_000 });
      await win(store, request);
      const living = await refused(other, rival(request));
      const { seen, fence, ...given } = request;
      const { version, leaseUntil, createdAt, claimedAt, readAt } = living;
      for (const value of [version, leaseUntil, createdAt, claimedAt, readAt])
        assert.ok(Number.isSafeInteger(value) && value > 0, `${value} is no whole number`);
      const expected: ClaimRecord = {
        ...given,
        token: 1,
        state: "claimed",
        version,
        leaseUntil,
        createdAt,
        claimedAt,
        settledAt: null,
        readAt,
        abandoned: false,
        disputed: false,
        byVerdict: false,
        cancelRequested: false,
        payload: null,
      };
      assert.deepEqual({ ...living }, expected);
    },
  },
  {
    number: 12,
    name: "a refusal, a look-up and a list show the same record, in every state",
    async check(harness) {
      const { store, other, effect, lock, namespace } = await scene(harness);
      const open = [effect("lapsed"), lock("lapsed")];
      for (const request of open) await win(store, request);
      await harness.expireLeases();
      const settled = settledStates.map((state) => effect(state));
      for (const [index, state] of settledStates.entries())
        await settle(store, await win(store, settled[index] ?? effect()), state, receipt);
      const abandoned = effect("abandoned");
      await store.abandon(await win(store, abandoned), "shutdown");
      const listed = (await store.list({ namespace, limit: 100 })).records;
      for (const request of [...open, ...settled, abandoned]) {
        const record = recordOf(await claim(other, rival(request)));
        assert.deepEqual(facts(record), facts(await look(store, request.id)));
        assert.deepEqual(listed.filter(({ id }) => id === request.id).map(facts), [facts(record)]);
      }
    },
  },
  {
    number: 12,
    name: "a refusal and its record are of one moment, also while the claim is settled and won again",
    async check(harness) {
      const { store, other, effect } = await scene(harness);
      for (let round = 0; round < 25; round++) {
        const request = effect(`order:${round}`);
        const ref = await win(store, request);
        const rivals = Array.from({ length: 4 }, () => rival(request));
        const answers = await Promise.all([
          ...rivals.map((each, index) => claim(index % 2 ? store : other, each)),
          settle(store, ref, round % 2 ? "released" : "completed", receipt),
        ]);
        for (const [index, each] of rivals.entries()) {
          const answer = answers[index];
          assert.ok(typeof answer === "object" && (answer.answer === "taken" || answer.answer === "free"));
          assert.equal(judgeClaim(answer.record, each), answer.answer);
        }
      }
    },
  },
];

function recordOf(result: ClaimResult): ClaimRecord {
  assert.ok(result.answer === "taken" || result.answer === "free");
  return result.record;
}

function within(moment: number, before: number, after: number): void {
  assert.ok(moment >= before && moment <= after, `${moment} is not between ${before} and ${after}`);
}
