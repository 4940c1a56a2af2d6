import type { ClaimRef, Store } from "@twiceproof/core/store";
import { randomId } from "@twiceproof/core/store";
import { describeOn } from "@twiceproof/test-servers/vitest";
import type { Connection } from "mysql2/promise";
import { expect, it } from "vitest";
import { connectionOn, effect, lock, scratchUrl, someWait, storeOn, win } from "./support/scratch.ts";

/** Promise 14, for what somebody else writes in the same database. */
describeOn(["mariadb", "mysql"], "the fence's statement", (server) => {
  async function scene() {
    const url = await scratchUrl(server.url);
    const store = await storeOn(url);
    const fence = await win(store, lock("thread"));
    return { store, fence, writer: await connectionOn(url), observer: await connectionOn(url) };
  }

  async function holds(store: Store, client: Connection, fence: ClaimRef): Promise<boolean> {
    const { text, values } = store.fenceStatement?.(fence) ?? expect.fail();
    const [rows] = await client.execute(text, [...values]);
    return (rows as unknown[]).length === 1;
  }

  it("holds while this very claim does, and also when its lease is over and nobody took it", async () => {
    const { store, fence, writer } = await scene();
    expect(await holds(store, writer, fence)).toBe(true);
    expect(await holds(store, writer, { ...fence, attemptId: randomId() })).toBe(false);
    expect(await holds(store, writer, { ...fence, token: fence.token + 1 })).toBe(false);
    expect(await holds(store, writer, await win(store, effect("order")))).toBe(false);
    await writer.query("update twiceproof_claims set lease_until = 0");
    expect(await holds(store, writer, fence)).toBe(true);
    await store.abandon(fence, "shutdown");
    expect(await holds(store, writer, fence)).toBe(false);
  });

  it("a takeover waits for the transaction, and the heartbeat is told to come again", async () => {
    const { store, fence, writer, observer } = await scene();
    await observer.query("update twiceproof_claims set lease_until = 0");
    const [record] = await store.get([fence.id]);
    await writer.query("start transaction");
    expect(await holds(store, writer, fence)).toBe(true);
    expect(await store.renew([{ ...fence, leaseMs: 60_000 }])).toEqual(["busy"]);
    const taken = win(store, lock("thread", { seen: record?.version ?? 0 }));
    await someWait(observer);
    await writer.query("commit");
    expect((await taken).token).toBe(2);
    expect(await holds(store, writer, fence)).toBe(false);
  });
});
