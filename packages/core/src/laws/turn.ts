import assert from "node:assert/strict";
import { randomId } from "../id.ts";
import type { ClaimRequest } from "../store.ts";
import type { StoreHarness, StoreLaw } from "./harness.ts";
import {
  changesNothing,
  claim,
  facts,
  lapse,
  look,
  receipt,
  refused,
  rival,
  type Scene,
  scene,
  settle,
  unlock,
  win,
} from "./requests.ts";
import { behind, enter, enterAll, idsOf, ticketOf, turnOf, waiting } from "./tickets.ts";

/** Whose turn it is: claims of a lock for which somebody waits. */
export const turnLaws: readonly StoreLaw[] = [
  {
    number: 1,
    name: "while somebody waits for a free lock, a claim without a place is behind, and changes nothing",
    async check(harness) {
      const { store, other, lock } = await scene(harness);
      for (const [request, version] of await freeLocks(harness, { store, lock })) {
        const [ticket] = await enterAll(store, request, 1);
        for (const seen of [null, version])
          await changesNothing(store, request.id, async () => {
            const record = await behind(other, rival(request, { seen }));
            assert.deepEqual(record && facts(record), facts(await look(store, request.id)));
          });
        assert.deepEqual(await waiting(other, request.id), [ticket?.ticketId]);
      }
    },
  },
  {
    number: 1,
    name: "while somebody waits for a lock that nobody ever held, a claim without a place is behind, without a record",
    async check(harness) {
      const { store, other, lock } = await scene(harness);
      const request = lock();
      const [ticket] = await enterAll(store, request, 1);
      assert.equal(await behind(other, request), null);
      assert.deepEqual(await store.get([request.id]), [null]);
      assert.equal((await win(other, turnOf(request, ticket ?? ticketOf(request), null))).token, 1);
    },
  },
  {
    number: 1,
    name: "a free lock goes to each who waits in turn, first come first served, and whoever wins has left the line",
    async check(harness) {
      const { store, other, lock } = await scene(harness);
      for (const [request] of await freeLocks(harness, { store, lock })) {
        const tickets = await enterAll(store, request, 4);
        for (const [index, ticket] of tickets.entries()) {
          const { version: seen, token } = await look(store, request.id);
          for (const later of tickets.slice(index + 1)) await behind(other, turnOf(request, later, seen));
          const ref = await win(other, turnOf(request, ticket, seen));
          assert.equal(ref.token, token + 1);
          assert.deepEqual(await waiting(store, request.id), idsOf(tickets.slice(index + 1)));
          await settle(other, ref, "released");
        }
        await win(store, rival(request, { seen: (await look(store, request.id)).version }));
      }
    },
  },
  {
    number: 1,
    name: "a place that was left, or whose lease is over, is worth no more than none, and holds up nobody",
    async check(harness) {
      const { store, other, lock } = await scene(harness);
      const request = lock();
      await settle(store, await win(store, request), "released");
      const { version: seen } = await look(store, request.id);
      const [lapsed] = await enterAll(store, request, 1);
      await harness.expireLeases();
      const [left, living] = await enterAll(store, request, 2);
      assert.ok(lapsed && left && living);
      await store.leave(request.id, left.ticketId);
      for (const ticket of [lapsed, left, { ticketId: randomId() }]) await behind(other, turnOf(request, ticket, seen));
      const ref = await win(other, turnOf(request, living, seen));
      await settle(other, ref, "released");
      const { version } = await look(store, request.id);
      await win(other, turnOf(request, lapsed, version));
    },
  },
  {
    number: 1,
    name: "of all who wait and claim at once, the first wins; and so on, until nobody is left",
    async check(harness) {
      const { store, lock } = await scene(harness);
      const stores = await Promise.all([1, 2, 3, 4].map(() => harness.connect()));
      const request = lock();
      let ref = await win(store, request);
      const tickets = await enterAll(store, request, 6);
      for (const [index, ticket] of tickets.entries()) {
        await settle(store, ref, "released");
        const { version: seen } = await look(store, request.id);
        const claims = [...tickets.slice(index).map((each) => turnOf(request, each, seen)), rival(request, { seen })];
        const results = await Promise.all(
          claims.reverse().map((each, at) => claim(stores[at % stores.length] ?? store, each)),
        );
        const [winner, ...more] = claims.filter((_, at) => results[at]?.answer === "won");
        assert.deepEqual([winner?.ticketId, more], [ticket.ticketId, []]);
        for (const { answer } of results) assert.ok(["won", "taken", "behind"].includes(answer), answer);
        ref = { id: request.id, attemptId: winner?.attemptId ?? "", token: index + 2 };
      }
      assert.deepEqual(await store.line(request.id), []);
    },
  },
  {
    number: 1,
    name: "a newcomer who claims in the moment of a release does not get ahead of those who wait",
    async check(harness) {
      const { store, other, lock } = await scene(harness);
      for (let round = 0; round < 10; round++) {
        const request = lock(`thread:${round}`);
        const ref = await win(store, request);
        const seen = (await look(store, ref.id)).version + 1;
        await enterAll(store, request, 1);
        const newcomers = [1, 2, 3].map(() => claim(other, rival(request, { seen })));
        const [settled, ...results] = await Promise.all([settle(store, ref, "released"), ...newcomers]);
        assert.equal(settled, "settled");
        for (const { answer } of results) assert.ok(answer === "taken" || answer === "behind", answer);
      }
    },
  },
  {
    number: 1,
    name: "of an entry and a claim without a place at once, either the entry sees the claim or the claim is behind",
    async check(harness) {
      const { store, other, lock } = await scene(harness);
      for (let round = 0; round < 20; round++) {
        const request = lock(`thread:${round}`);
        await settle(store, await win(store, request), "released");
        const { version: seen } = await look(store, request.id);
        const [queued, claimed] = await Promise.all([
          store.queue(ticketOf(request)),
          claim(other, rival(request, { seen })),
        ]);
        assert.ok(queued.answer === "queued");
        const story = [queued.record?.state, claimed.answer];
        assert.deepEqual(story, claimed.answer === "won" ? ["claimed", "won"] : ["released", "behind"]);
      }
    },
  },
  {
    number: 1,
    name: "a lock that was taken from its holder goes to the first who waits",
    async check(harness) {
      const { store, other, lock } = await scene(harness);
      const request = lock();
      await win(store, request);
      const [first, second] = await enterAll(store, request, 2);
      assert.ok(first && second);
      assert.equal(await unlock(other, await look(other, request.id)), "done");
      const { version: seen } = await look(other, request.id);
      await behind(other, rival(request, { seen }));
      await behind(other, turnOf(request, second, seen));
      assert.equal((await win(other, turnOf(request, first, seen))).token, 3);
    },
  },
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

/** One lock of each kind of free, with its version. */
async function freeLocks(
  harness: StoreHarness,
  { store, lock }: Pick<Scene, "store" | "lock">,
): Promise<readonly (readonly [request: ClaimRequest, version: number])[]> {
  const requests = ["lapsed", "abandoned", "released", "unlocked"].map((key) => lock(key));
  const [lapsed, abandoned, released, unlocked] = requests;
  assert.ok(lapsed && abandoned && released && unlocked);
  await lapse(harness, store, lapsed);
  await store.abandon(await win(store, abandoned), "shutdown");
  await settle(store, await win(store, released), "released");
  await win(store, unlocked);
  assert.equal(await unlock(store, await look(store, unlocked.id)), "done");
  return Promise.all(requests.map(async (request) => [request, (await look(store, request.id)).version] as const));
}
