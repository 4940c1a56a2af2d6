import assert from "node:assert/strict";
import { randomId } from "../id.ts";
import type { StoreLaw } from "./harness.ts";
import {
  changesNothing,
  claim,
  clockPast,
  facts,
  look,
  receipt,
  renew,
  scene,
  settle,
  unlock,
  win,
} from "./requests.ts";
import { enter, enterAll, idsOf, ticketOf, waiting } from "./tickets.ts";

/** Who stands in the line of a lock, and where. */
export const lineLaws: readonly StoreLaw[] = [
  {
    number: 0,
    name: "who enters a line stands at its end, and is told how many wait before it",
    async check(harness) {
      const { store, other, lock } = await scene(harness);
      const request = lock();
      assert.deepEqual(await store.line(request.id), []);
      await win(store, request);
      const tickets = [ticketOf(request), ticketOf(request), ticketOf(request), ticketOf(request)];
      for (const [index, ticket] of tickets.entries())
        assert.equal(await enter(index % 2 ? store : other, ticket), index);
      for (const each of [store, other]) assert.deepEqual(await waiting(each, request.id), idsOf(tickets));
    },
  },
  {
    number: 0,
    name: "a line lists those who wait with what they gave, to the byte, and with the moments of their places",
    async check(harness) {
      const { store, other, lock } = await scene(harness);
      const given = [
        { runId: null, holder: "host:12:ab" },
        { runId: "", holder: "'; delete from line; --" },
        { runId: "Thread-7 ", holder: " Worker\t1\n" },
        { runId: "thread-7", holder: "e\u0301 \u00e9 ß \ud83d\udd12" },
        { runId: "\\u0000 \\ $1 %s ?", holder: "x".repeat(512) },
      ].map((facts) => ticketOf(lock(), facts));
      for (const ticket of given) await enter(store, ticket);
      const line = await other.line(lock().id);
      assert.deepEqual(
        line.map(({ ticketId, runId, holder }) => ({ ticketId, runId, holder })),
        given.map(({ ticketId, runId, holder }) => ({ ticketId, runId, holder })),
      );
      for (const [index, { queuedAt, leaseUntil, readAt }] of line.entries()) {
        for (const moment of [queuedAt, leaseUntil, readAt]) assert.ok(Number.isSafeInteger(moment) && moment > 0);
        assert.ok(queuedAt >= (line[index - 1]?.queuedAt ?? 0) && queuedAt <= readAt && readAt < leaseUntil);
      }
    },
  },
  {
    number: 12,
    name: "a place is told together with the lock's record, and with null where nobody ever held it",
    async check(harness) {
      const { store, other, lock } = await scene(harness);
      const ticket = ticketOf(lock());
      const told = async () => {
        const queued = await other.queue(ticket);
        assert.ok(queued.answer === "queued");
        return queued.record;
      };
      assert.equal(await told(), null);
      await other.leave(ticket.id, ticket.ticketId);
      const ref = await win(store, lock("thread:1", { runId: "run-9", scope: "thread:1" }));
      for (const change of [
        () => harness.expireLeases(),
        () => renew(store, ref),
        () => settle(store, ref, "released"),
      ]) {
        const record = await told();
        assert.deepEqual(record && facts(record), facts(await look(store, ref.id)));
        await change();
      }
      assert.equal((await told())?.state, "released");
    },
  },
  {
    number: 12,
    name: "a full line refuses with its length and enters nothing, and keeps those who are in it",
    async check(harness) {
      const { store, other, lock } = await scene(harness);
      const request = lock();
      const tickets = [];
      for (const maxQueue of [1, 2]) {
        tickets.push(ticketOf(request, { maxQueue }));
        await enter(store, tickets.at(-1) ?? ticketOf(request));
        for (const most of [maxQueue, 1])
          assert.deepEqual(await other.queue(ticketOf(request, { maxQueue: most })), {
            answer: "full",
            depth: maxQueue,
          });
      }
      for (const [index, ticket] of tickets.entries())
        assert.equal(await enter(other, { ...ticket, maxQueue: 1 }), index);
      assert.deepEqual(await waiting(store, request.id), idsOf(tickets));
    },
  },
  {
    number: 12,
    name: "of many who enter a line at once, each has a place of its own, and no more enter than may",
    async check(harness) {
      const { store, lock } = await scene(harness);
      const stores = await Promise.all([1, 2, 3, 4].map(() => harness.connect()));
      for (const maxQueue of [100, 3]) {
        const request = lock(`thread:${maxQueue}`);
        await win(store, request);
        const tickets = [...stores, ...stores].map(() => ticketOf(request, { maxQueue }));
        const answers = await Promise.all(tickets.map((ticket, index) => stores[index % 4]?.queue(ticket)));
        const places = answers.flatMap((queued, index) =>
          queued?.answer === "queued" ? [{ ahead: queued.ahead, ticketId: tickets[index]?.ticketId }] : [],
        );
        places.sort((a, b) => a.ahead - b.ahead);
        const most = Math.min(tickets.length, maxQueue);
        assert.deepEqual(
          places.map(({ ahead }) => ahead),
          Array.from({ length: most }, (_, index) => index),
        );
        assert.deepEqual(
          await waiting(store, request.id),
          places.map(({ ticketId }) => ticketId),
        );
        for (const queued of answers) if (queued?.answer === "full") assert.equal(queued.depth, most);
      }
    },
  },
  {
    number: 16,
    name: "the lines of two locks know nothing of each other",
    async check(harness) {
      const { store, other, lock } = await scene(harness);
      const [one, two] = [lock("thread:1"), lock("thread:2")];
      const ones = await enterAll(store, one, 2);
      const twos = await enterAll(other, two, 2);
      for (const { ticketId } of ones) await store.leave(two.id, ticketId);
      assert.equal((await store.queue(ticketOf(lock("thread:3"), { maxQueue: 1 }))).answer, "queued");
      assert.deepEqual(await waiting(store, one.id), idsOf(ones));
      assert.deepEqual(await waiting(store, two.id), idsOf(twos));
    },
  },
  {
    number: 18,
    name: "whoever enters, asks, or leaves, the row of the lock stays as it is",
    async check(harness) {
      const { store, other, lock } = await scene(harness);
      const request = lock();
      const ref = await win(store, request);
      await changesNothing(store, request.id, async () => {
        const [first] = await enterAll(other, request, 2);
        assert.equal(await enter(other, first ?? ticketOf(request)), 0);
        await other.leave(request.id, first?.ticketId ?? "");
        assert.equal((await other.line(request.id)).length, 1);
      });
      assert.equal(await renew(store, ref), "held");
      assert.equal(await settle(store, ref, "released"), "settled");
    },
  },
  {
    number: 10,
    name: "retention leaves lines alone, and so does whatever becomes of the lock",
    async check(harness) {
      const { store, other, effect, lock, namespace } = await scene(harness);
      const request = lock();
      const ref = await win(store, request);
      const tickets = idsOf(await enterAll(store, request, 2));
      const done = await win(store, effect());
      await settle(store, done, "completed", receipt);
      await clockPast(store, (await look(store, done.id)).settledAt ?? 0);
      for (const keepKeys of [true, false])
        assert.equal(await other.prune({ namespace, olderThanMs: 0, limit: 100, keepKeys }), 1);
      assert.deepEqual(await waiting(other, request.id), tickets);
      await settle(store, ref, "released");
      assert.equal((await claim(other, { ...request, attemptId: randomId() })).answer, "behind");
      const again = lock("thread:2");
      await win(store, again);
      const left = idsOf(await enterAll(store, again, 2));
      assert.equal(await unlock(other, await look(store, again.id)), "done");
      assert.deepEqual(await waiting(store, request.id), tickets);
      assert.deepEqual(await waiting(store, again.id), left);
    },
  },
];
