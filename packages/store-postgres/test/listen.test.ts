import { type Left, randomId } from "@twiceproof/core/store";
import { startPgBouncer } from "@twiceproof/test-servers";
import { describeOn } from "@twiceproof/test-servers/vitest";
import type { Client } from "pg";
import { expect, it, onTestFinished } from "vitest";
import { type PostgresListener, postgresStore } from "../src/index.ts";
import { effect, lock, rejection, scratch, ticket, until, win } from "./support/scratch.ts";

describeOn(["postgres", "postgres-distribution"], "listening", (server) => {
  const place = scratch(server);

  /** A store that listens, and the locks that it was woken for. */
  async function ears(
    listen?: Client,
  ): Promise<{ readonly woken: string[]; readonly watch: (key: string) => () => void }> {
    const client = listen ?? (await place.client());
    const store = place.store(undefined, { listen: client });
    const woken: string[] = [];
    const watch = (key: string) => {
      const stop = store.watch?.(lock(key).id, () => woken.push(key));
      if (stop === undefined) throw new Error("the store cannot be watched");
      return stop;
    };
    watch("any");
    // Behind the `listen`, on the same connection.
    await client.query("select 1");
    return { woken, watch };
  }

  /** What was notified before has been heard when this has. */
  async function echo(woken: string[]): Promise<readonly string[]> {
    await place.query("select pg_notify($1, $2)", [place.schema, lock("any").id]);
    await until(async () => (await place.query("select 1 as one")).length === 1 && woken.at(-1) === "any");
    return woken.splice(0).slice(0, -1);
  }

  it("wakes those who watch a lock when it is released, taken away or given up, alone or in a list", async () => {
    const store = await place.migrated();
    const { woken, watch } = await ears();
    watch("thread");
    await store.queue(ticket("thread"));
    const [waiting] = await store.line(ticket("thread").id);
    const again = async () => {
      const [record] = await store.get([ticket("thread").id]);
      const seen = record?.version ?? null;
      return win(store, lock("thread", { seen, ticketId: waiting?.ticketId }));
    };
    const by = { decisionId: randomId(), who: "ana", why: "stuck", evidence: null };
    const released = { state: "released", payload: null } as const;
    const ends: readonly ((ref: Awaited<ReturnType<typeof win>>) => Promise<unknown>)[] = [
      (ref) => store.settle([{ ...ref, ...released }]),
      async (ref) =>
        store.settle([
          { ...(await win(store, effect("order"))), ...released },
          { ...ref, ...released },
        ]),
      (ref) => store.abandon(ref, "shutdown"),
      async (ref) => {
        const [doubt] = await store.get([ref.id]);
        if (doubt) await store.resolve(doubt, { state: "unlocked", attemptId: randomId() }, by);
      },
    ];
    for (const end of ends) {
      const ref = await again();
      await store.queue(ticket("thread", waiting && { ticketId: waiting.ticketId }));
      expect(await echo(woken)).toEqual([]);
      await end(ref);
      expect(await echo(woken)).toEqual(["thread"]);
    }
  });

  it("is told how the lock was left, which is all that whoever is the first in line needs to take it", async () => {
    const store = await place.migrated();
    const lefts: (Left | undefined)[] = [];
    const client = await place.client();
    place.store(undefined, { listen: client }).watch?.(lock("thread").id, (left) => lefts.push(left));
    // Behind the `listen`, on the same connection.
    await client.query("select 1");
    const first = await win(store, lock("thread"));
    const waits = ticket("thread");
    await store.queue(waits);
    await store.queue(ticket("thread"));
    await store.settle([{ ...first, state: "released", payload: null }]);
    await until(async () => (await place.query("select 1 as one")).length === 1 && lefts.length > 0);
    const [record] = await store.get([first.id]);
    expect(lefts).toEqual([{ version: record?.version, token: 1 }]);
    const claim = lock("thread", { seen: lefts[0]?.version ?? null, ticketId: waits.ticketId });
    expect((await win(store, claim)).token).toBe(2);
    expect(await store.line(first.id)).toHaveLength(1);
    // Its answer was lost.
    expect(await store.claim([claim])).toEqual([{ answer: "won", token: 2 }]);
  });

  it("takes for a plain call to look what anybody else may notify", async () => {
    const lefts: (Left | undefined)[] = [];
    const client = await place.client();
    const { id } = lock("thread");
    place.store(undefined, { listen: client }).watch?.(id, (left) => lefts.push(left));
    const said = ["", " 2", " x y", " 2 1.5", " 1e400 1", " 9223372036854775808 1", " 2 1"];
    await client.query("select 1");
    for (const how of said) await place.query("select pg_notify($1, $2)", [place.schema, `${id}${how}`]);
    await until(async () => (await client.query("select 1")) && lefts.length === said.length);
    expect(lefts).toEqual([...said.slice(1).map(() => undefined), { version: 2, token: 1 }]);
  });

  it("is told nothing of a lock for which nobody waits, of effects, and of what it no longer watches", async () => {
    const store = await place.migrated();
    const { woken, watch } = await ears();
    const stops = ["thread", "thread"].map(watch);
    const release = async (key: string) => {
      const [record] = await store.get([lock(key).id]);
      const ref = await win(store, lock(key, { seen: record?.version ?? null }));
      return async () => store.settle([{ ...ref, state: "released", payload: null }]);
    };
    await (await release("thread"))();
    await store.settle([{ ...(await win(store, effect("thread"))), state: "released", payload: null }]);
    const gone = ticket("thread");
    await store.queue(gone);
    await store.leave(gone.id, gone.ticketId);
    await (await release("thread"))();
    expect(await echo(woken)).toEqual([]);
    for (const expected of [["thread", "thread"], ["thread"], []]) {
      const free = await release("thread");
      const waits = ticket("thread");
      await store.queue(waits);
      await free();
      await store.leave(waits.id, waits.ticketId);
      expect(await echo(woken)).toEqual(expected);
      stops.pop()?.();
    }
  });

  it("loses nothing but the waking when the connection is lost, and does not fall with it", async () => {
    const store = await place.migrated();
    const client = await place.client();
    client.removeAllListeners("error");
    const { woken, watch } = await ears(client);
    watch("thread");
    const { processID } = client as unknown as { processID: number };
    const ended = new Promise((resolve) => client.once("end", resolve));
    await place.query("select pg_terminate_backend($1)", [processID]);
    await ended;
    const ref = await win(store, lock("thread"));
    const waits = ticket("thread");
    await store.queue(waits);
    await store.settle([{ ...ref, state: "released", payload: null }]);
    // Asked of a connection that is gone.
    watch("thread")();
    const queued = await store.queue(waits);
    const seen = queued.answer === "queued" ? (queued.record?.version ?? null) : null;
    expect((await win(store, lock("thread", { seen, ticketId: waits.ticketId }))).token).toBe(2);
    expect(woken).toEqual([]);
  });

  it("stops with the store, and leaves the connection as it was", async () => {
    const client = await place.client();
    const store = await place.migrated(undefined, { listen: client });
    const woken: string[] = [];
    store.watch?.(ticket("thread").id, () => woken.push("thread"));
    await client.query("select 1");
    const channels = async () => (await client.query("select pg_listening_channels() as channel")).rows;
    expect(await channels()).toEqual([{ channel: place.schema }]);
    await store.close();
    expect(await channels()).toEqual([]);
    expect(client.listenerCount("notification")).toBe(0);
    expect(woken).toEqual([]);
  });
});

describeOn(["postgres"], "listening behind PgBouncer", (server) => {
  const place = scratch(server);

  it("hears nothing, and the line goes on", async () => {
    const bouncer = await startPgBouncer(place.url);
    onTestFinished(() => bouncer.stop());
    const [pool, listen] = [
      place.pool({ connectionString: bouncer.url }),
      await place.client({ connectionString: bouncer.url }),
    ];
    const store = await place.migrated(pool, { listen });
    store.watch?.(lock("thread").id, () => undefined);
    await listen.query("select 1");
    const ref = await win(store, lock("thread"));
    const waits = ticket("thread");
    await store.queue(waits);
    await store.settle([{ ...ref, state: "released", payload: null }]);
    const queued = await store.queue(waits);
    const seen = queued.answer === "queued" ? (queued.record?.version ?? null) : null;
    expect((await win(store, lock("thread", { seen, ticketId: waits.ticketId }))).token).toBe(2);
    await store.close();
  });
});

it("needs a connection that can hear, and asks nothing of it before somebody watches", async () => {
  const client = { query: () => Promise.reject(new Error("not to be asked")) };
  for (const listen of [{}, client, "postgres://", () => undefined])
    expect(() => postgresStore(client, { listen: listen as PostgresListener })).toThrow(
      expect.objectContaining({ code: "INVALID_ARGUMENT" }),
    );
  expect(postgresStore(client).watch).toBeUndefined();
  const store = postgresStore(client, { listen: { ...client, on: () => undefined, off: () => undefined } });
  await store.close();
  expect(await rejection(store.get(["0".repeat(64)]))).toMatchObject({ code: "STORE_CLOSED" });
});
