import assert from "node:assert/strict";
import { randomId } from "../id.ts";
import type { StoreLaw } from "./harness.ts";
import { clockPast, leaseMs, scene, win } from "./requests.ts";
import { enter, enterAll, idsOf, ticketOf, waiting } from "./tickets.ts";

/** How long a place in a line lasts, and what it is when it is asked for again. */
export const placeLaws: readonly StoreLaw[] = [
  {
    number: 11,
    name: "a ticket's lease runs from now by the store's clock, and is extended by asking again",
    async check(harness) {
      const { store, other, lock } = await scene(harness);
      const ticket = ticketOf(lock());
      const before = (await store.health()).now;
      await enter(store, { ...ticket, leaseMs: leaseMs / 10 });
      const [short] = await other.line(ticket.id);
      await clockPast(store, short?.readAt ?? 0);
      assert.equal(await enter(other, ticket), 0);
      const [long] = await store.line(ticket.id);
      const after = (await other.health()).now;
      assert.ok(short && long);
      assert.ok(short.queuedAt >= before && short.readAt <= long.readAt && long.readAt <= after);
      assert.ok(short.leaseUntil >= before + leaseMs / 10 && short.leaseUntil <= after + leaseMs / 10);
      assert.ok(long.leaseUntil >= before + leaseMs && long.leaseUntil <= after + leaseMs);
      assert.equal(long.queuedAt, short.queuedAt);
    },
  },
  {
    number: 11,
    name: "a ticket whose lease is over by the store's clock is out of the line at once",
    async check(harness) {
      const { store, other, lock } = await scene(harness);
      const ticket = ticketOf(lock(), { leaseMs: 10 });
      assert.equal(await enter(store, ticketOf(lock(), { leaseMs: 1_200_000 })), 0);
      await enter(store, ticket);
      await clockPast(store, (await store.health()).now + 10);
      assert.equal((await other.line(ticket.id)).length, 1);
      assert.equal(await enter(other, ticketOf(lock(), { maxQueue: 2 })), 1);
    },
  },
  {
    number: 11,
    name: "a ticket whose lease is over holds no place, and enters again at the end",
    async check(harness) {
      const { store, other, lock } = await scene(harness);
      const request = lock();
      const [first, second] = await enterAll(store, request, 2);
      assert.ok(first && second);
      const queuedAt = (await store.line(request.id))[0]?.queuedAt ?? Number.NaN;
      await harness.expireLeases();
      assert.deepEqual(await other.line(request.id), []);
      await clockPast(store, queuedAt);
      const third = ticketOf(request, { maxQueue: 1 });
      assert.equal(await enter(other, third), 0);
      assert.equal((await other.queue({ ...second, maxQueue: 1 })).answer, "full");
      assert.equal(await enter(other, second), 1);
      assert.equal(await enter(store, first), 2);
      const line = await store.line(request.id);
      assert.deepEqual(
        line.map(({ ticketId }) => ticketId),
        idsOf([third, second, first]),
      );
      assert.ok(line.every((ticket) => ticket.queuedAt > queuedAt));
    },
  },
  {
    number: 13,
    name: "a ticket that is asked again keeps its place, and is told it as it is by then",
    async check(harness) {
      const { store, other, lock } = await scene(harness);
      const request = lock();
      await win(store, request);
      const tickets = await enterAll(store, request, 3);
      const before = (await store.line(request.id)).map(({ leaseUntil, readAt, ...facts }) => facts);
      for (const each of [other, store])
        for (const place of [2, 0, 1]) assert.equal(await enter(each, tickets[place] ?? ticketOf(request)), place);
      assert.deepEqual(
        (await other.line(request.id)).map(({ leaseUntil, readAt, ...facts }) => facts),
        before,
      );
      await store.leave(request.id, tickets[0]?.ticketId ?? "");
      for (const place of [1, 2]) assert.equal(await enter(other, tickets[place] ?? ticketOf(request)), place - 1);
    },
  },
  {
    number: 13,
    name: "a ticket that arrives twice at once has one place",
    async check(harness) {
      const { store, other, lock } = await scene(harness);
      for (let round = 0; round < 10; round++) {
        const request = lock(`thread:${round}`);
        await win(store, request);
        const ticket = ticketOf(request, { maxQueue: 1 });
        assert.deepEqual(await Promise.all([store, other].map((each) => enter(each, ticket))), [0, 0]);
        assert.deepEqual(await waiting(store, request.id), [ticket.ticketId]);
      }
    },
  },
  {
    number: 13,
    name: "who leaves a line is out at once; leaving again, or without a place, changes nothing",
    async check(harness) {
      const { store, other, lock } = await scene(harness);
      const request = lock();
      const [first, second, third] = await enterAll(store, request, 3);
      assert.ok(first && second && third);
      for (const each of [other, store, other]) {
        await each.leave(request.id, second.ticketId);
        await each.leave(request.id, randomId());
        assert.deepEqual(await waiting(store, request.id), idsOf([first, third]));
      }
      assert.equal(await enter(other, third), 1);
      assert.equal(await enter(other, second), 2);
    },
  },
];
