import assert from "node:assert/strict";
import { randomId } from "../id.ts";
import type { StoreLaw } from "./harness.ts";
import { changesNothing, claim, clockPast, facts, look, rival, scene, settle, unlock, win } from "./requests.ts";
import { behind, enter, enterAll, freeLocks, idsOf, ticketOf, turnOf, waiting } from "./tickets.ts";

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
    name: "the dead hold up nobody: neither those who wait behind them nor a newcomer",
    async check(harness) {
      const { store, other, lock } = await scene(harness);
      const request = lock("thread:1");
      const living = ticketOf(request);
      await enter(store, ticketOf(request, { leaseMs: 10 }));
      await enter(store, living);
      await clockPast(store, (await store.health()).now + 10);
      await win(other, turnOf(request, living, null));
      await enterAll(store, lock("thread:2"), 2);
      await harness.expireLeases();
      await win(other, lock("thread:2"));
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
        const newcomers = () => [1, 2].map(() => claim(other, rival(request, { seen })));
        const early = newcomers();
        const [settled, ...results] = await Promise.all([settle(store, ref, "released"), ...early, ...newcomers()]);
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
        const entry = () => store.queue(ticketOf(request));
        const newcomer = () => claim(other, rival(request, { seen }));
        const early = round % 2 ? newcomer() : undefined;
        const [queued, claimed] = await Promise.all([entry(), early ?? newcomer()]);
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
];
