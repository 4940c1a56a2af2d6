import assert from "node:assert/strict";
import { randomId } from "../id.ts";
import type { StoreLaw } from "./harness.ts";
import { changesNothing, claim, facts, look, receipt, refused, rival, scene, settle, win } from "./requests.ts";
import { behind, enter, enterAll, freeLocks, idsOf, ticketOf, turnOf, waiting } from "./tickets.ts";

/** What a claim is told beside a line: of locks that are held, that others wait for, and of effects. */
export const turnAnswerLaws: readonly StoreLaw[] = [
  {
    number: 12,
    name: "a lock that is held is told as taken, with its record, to everybody, wherever they stand in the line",
    async check(harness) {
      const { store, other, lock } = await scene(harness);
      const request = lock();
      await win(store, request);
      const tickets = await enterAll(store, request, 2);
      for (const ticketId of [undefined, ...idsOf(tickets)]) {
        const record = await refused(other, rival(request, { ticketId, seen: 1 }));
        assert.deepEqual(facts(record), facts(await look(store, request.id)));
      }
      const elsewhere = rival(request, { fingerprint: "1:other", ticketId: tickets[1]?.ticketId });
      await harness.expireLeases();
      await enter(store, tickets[0] ?? ticketOf(request));
      await refused(other, elsewhere);
    },
  },
  {
    number: 13,
    name: "the first in line who names no version, or an old one, is told that the lock is free, and keeps its place",
    async check(harness) {
      const { store, other, lock } = await scene(harness);
      for (const [request, version] of await freeLocks(harness, { store, lock })) {
        const tickets = await enterAll(store, request, 2);
        const first = tickets[0] ?? ticketOf(request);
        for (const seen of [null, version - 1, version + 1]) {
          const record = await refused(other, turnOf(request, first, seen), "free");
          assert.equal(record.version, version);
        }
        assert.deepEqual(await waiting(store, request.id), idsOf(tickets));
        await win(other, turnOf(request, first, version));
      }
    },
  },
  {
    number: 13,
    name: "a claim that won its turn is told so again although others wait, and is not put back into the line",
    async check(harness) {
      const { store, other, lock } = await scene(harness);
      const request = lock();
      const [first, second] = await enterAll(store, request, 2);
      assert.ok(first && second);
      const turn = turnOf(request, first, null);
      const ref = await win(store, turn);
      for (const each of [other, store])
        for (const again of [turn, { ...turn, ticketId: undefined }])
          await changesNothing(store, ref.id, async () => assert.deepEqual(await win(each, again), ref));
      assert.deepEqual(await waiting(store, request.id), [second.ticketId]);
    },
  },
  {
    number: 13,
    name: "a claim of one's turn that arrives twice at once wins one token",
    async check(harness) {
      const { store, other, lock } = await scene(harness);
      for (let round = 0; round < 10; round++) {
        const request = lock(`thread:${round}`);
        await settle(store, await win(store, request), "released");
        const [first, second] = await enterAll(store, request, 2);
        const { version } = await look(store, request.id);
        const turn = turnOf(request, first ?? ticketOf(request), version);
        const results = await Promise.all([store, other].map((each) => claim(each, turn)));
        assert.deepEqual(results, [
          { answer: "won", token: 2 },
          { answer: "won", token: 2 },
        ]);
        assert.deepEqual(await waiting(store, request.id), [second?.ticketId]);
      }
    },
  },
  {
    number: 14,
    name: "effects wait in no line: not in that of the lock they are claimed under, nor in any other",
    async check(harness) {
      const { store, other, effect, lock } = await scene(harness);
      const fence = await win(store, lock());
      await enterAll(store, lock(), 2);
      await settle(store, await win(other, effect("under the run", { fence })), "completed", receipt);
      await win(other, effect("outside"));
      await harness.expireLeases();
      await enterAll(store, lock(), 2);
      await win(other, effect("under a lapsed lock", { fence }));
    },
  },
  {
    number: 16,
    name: "a place in the line of another lock is none, and holds up nobody there",
    async check(harness) {
      const { store, other, lock } = await scene(harness);
      const [one, two] = [lock("thread:1"), lock("thread:2")];
      const ones = await enterAll(store, one, 2);
      const foreign = ones[0] ?? ticketOf(one);
      const [own] = await enterAll(store, two, 1);
      await behind(other, turnOf(two, foreign, null));
      await store.leave(two.id, own?.ticketId ?? "");
      await win(other, turnOf(two, foreign, null));
      await win(other, lock("thread:3"));
      assert.deepEqual(await waiting(store, one.id), idsOf(ones));
      await win(other, turnOf(one, foreign, null));
    },
  },
  {
    number: 16,
    name: "a mixed batch of locks answers item by item: won, taken, free and behind",
    async check(harness) {
      const { store, other, lock } = await scene(harness);
      const keys = ["mine", "not mine", "held", "free", "open", "nobody waits"];
      const [mine, foreign, held, free, open, alone] = keys.map((key) => lock(key));
      assert.ok(mine && foreign && held && free && open && alone);
      await win(store, held);
      await settle(store, await win(store, free), "released");
      const tickets = [];
      for (const request of [mine, foreign, held, free]) tickets.push((await enterAll(store, request, 1))[0]);
      const seen = { seen: (await look(store, free.id)).version };
      const results = await other.claim([
        rival(foreign),
        rival(mine, { ticketId: tickets[0]?.ticketId }),
        rival(held, { ticketId: tickets[2]?.ticketId }),
        rival(open),
        rival(free, { ticketId: tickets[3]?.ticketId }),
        rival(alone, { ticketId: randomId() }),
      ]);
      const answers = results.map(({ answer }) => answer);
      assert.deepEqual(answers, ["behind", "won", "taken", "won", "free", "won"]);
      const [next, last] = await other.claim([rival(free, seen), rival(alone)]);
      assert.deepEqual([next?.answer, last?.answer], ["behind", "taken"]);
    },
  },
];
