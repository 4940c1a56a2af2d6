import type { ClaimRef, Store } from "@twiceproof/core/store";
import { randomId } from "@twiceproof/core/store";
import { describeOn } from "@twiceproof/test-servers/vitest";
import type { Client } from "pg";
import { expect, it } from "vitest";
import { bare, effect, lock, scratch, waiting, win } from "./support/scratch.ts";

/** Promise 14, for what somebody else writes in the same database. */
describeOn(["postgres", "postgres-distribution"], "the fence's statement", (server) => {
  const place = scratch(server);

  async function scene() {
    const store = await place.migrated();
    const fence = await win(store, lock("thread"));
    return { store, fence, writer: await place.client(), second: await place.client() };
  }

  async function holds(store: Store, client: Client, fence: ClaimRef): Promise<boolean> {
    const { text, values } = store.fenceStatement?.(fence) ?? expect.fail();
    const { rows } = await client.query(text, [...values]);
    return rows.length === 1;
  }

  it("holds while this very claim does, and also when its lease is over and nobody took it", async () => {
    const { store, fence, writer } = await scene();
    expect(await holds(store, writer, fence)).toBe(true);
    expect(await holds(store, writer, { ...fence, attemptId: randomId() })).toBe(false);
    expect(await holds(store, writer, { ...fence, token: fence.token + 1 })).toBe(false);
    expect(await holds(store, writer, await win(store, effect("order")))).toBe(false);
    await place.query("update $s.claims set lease_until = 'epoch'");
    expect(await holds(store, writer, fence)).toBe(true);
    await store.abandon(fence, "shutdown");
    expect(await holds(store, writer, fence)).toBe(false);
  });

  it.each(["takeover", "release"])("a %s waits for the transaction, and a renewal does not", async (how) => {
    const { store, fence, writer, second } = await scene();
    await writer.query("begin");
    expect(await holds(store, writer, fence)).toBe(true);
    expect(await store.renew([{ ...fence, leaseMs: 60_000 }])).toEqual(["held"]);
    await place.query("update $s.claims set lease_until = 'epoch'");
    const [record] = await store.get([fence.id]);
    const other = place.store(second);
    const ended =
      how === "takeover"
        ? win(other, lock("thread", { seen: record?.version ?? 0 }))
        : other.settle([{ ...fence, state: "released", payload: null }]);
    await waiting(place, second);
    await writer.query("commit");
    await ended;
    expect(await holds(store, writer, fence)).toBe(false);
  });

  it("waits for a takeover under way, and does not hold when that commits", async () => {
    const { store, fence, writer, second } = await scene();
    await place.query("update $s.claims set lease_until = 'epoch'");
    const [record] = await store.get([fence.id]);
    await second.query("begin");
    await win(place.store(bare(second)), lock("thread", { seen: record?.version ?? 0 }));
    await writer.query("begin");
    const asked = holds(store, writer, fence);
    await waiting(place, writer);
    await second.query("commit");
    expect(await asked).toBe(false);
    await writer.query("rollback");
  });
});
