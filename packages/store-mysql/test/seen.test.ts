import type { ClaimRef, ClaimRequest, Store } from "@twiceproof/core/store";
import { describeOn } from "@twiceproof/test-servers/vitest";
import type { PoolOptions } from "mysql2";
import type { Connection } from "mysql2/promise";
import { expect, it } from "vitest";
import { mysqlStore } from "../src/index.ts";
import { oddOptions, oddSession } from "./support/connect.ts";
import { connectionOn, lock, poolOn, scratchUrl, ticket, win } from "./support/scratch.ts";

const id = lock("thread").id;
const row = `id = unhex('${id}')`;

/** A lock that its next claimant knows: who gave it back has read no version, and knows which one it left. */
describeOn(["mariadb", "mysql"], "a lock that was seen", (server) => {
  async function scene(options: PoolOptions = {}, session?: string) {
    const url = await scratchUrl(server.url);
    const pool = poolOn(url, { connectionLimit: 1, ...options }, session);
    const store = mysqlStore(pool);
    await store.migrate();
    const ref = await win(store, lock("thread"));
    return { store, pool, ref, other: await connectionOn(url) };
  }

  const give = (store: Store, ref: ClaimRef) => store.settle([{ ...ref, state: "released", payload: null }]);
  const again = (seen: number, more: Partial<ClaimRequest> = {}) => lock("thread", { seen, ...more });

  /** How many statements the session sent. Asking is one itself. */
  async function sent(session: Pick<Connection, "query">): Promise<number> {
    const [rows] = await session.query("show session status like 'Questions'");
    return Number((rows as { Value: string }[])[0]?.Value);
  }

  it("is taken and given back with one statement each", async () => {
    const { store, pool, ref } = await scene();
    await give(store, ref);
    // With the first of each the statements are prepared, which counts too.
    await give(store, await win(store, again(2)));
    const before = await sent(pool);
    await give(store, await win(store, again(4)));
    expect((await sent(pool)) - before).toBe(1 + 2);
    expect(await store.get([id])).toMatchObject([{ state: "released", token: 3, version: 6 }]);
  });

  it("is won under the next token, also where numbers are texts and after 2^32 of them", async () => {
    for (const [options, session] of [[{}], [oddOptions, oddSession]] as const) {
      const { store, ref, other } = await scene(options, session);
      await give(store, ref);
      for (const token of [1, 4_294_967_296, Number.MAX_SAFE_INTEGER - 1]) {
        await other.query(
          `update twiceproof_claims set state = 'released', token = ${token}, version = 2 where ${row}`,
        );
        expect(await store.claim([again(2, { runId: "run-2" })])).toEqual([{ answer: "won", token: token + 1 }]);
        expect(await store.get([id])).toMatchObject([
          { state: "claimed", token: token + 1, version: 3, runId: "run-2" },
        ]);
      }
    }
  });

  it("is won twice by an attempt that is asked twice, under the same token, and never once it was given back", async () => {
    const { store, ref } = await scene();
    await give(store, ref);
    const request = again(2);
    for (let time = 0; time < 2; time++) expect(await store.claim([request])).toEqual([{ answer: "won", token: 2 }]);
    await give(store, { ...ref, attemptId: request.attemptId, token: 2 });
    for (const seen of [2, 4])
      expect(await store.claim([{ ...request, seen }])).toMatchObject([{ answer: "taken", record: { token: 2 } }]);
  });

  it("is taken over when its lease is over or it was given up, and no sooner", async () => {
    const { store, ref, other } = await scene();
    expect(await store.claim([again(1)])).toMatchObject([{ answer: "taken" }]);
    await other.query(`update twiceproof_claims set lease_until = 1 where ${row}`);
    const second = await win(store, again(1));
    expect(second.token).toBe(2);
    await store.abandon(second, "stopped");
    expect(await store.claim([again(3)])).toEqual([{ answer: "won", token: 3 }]);
    expect(await give(store, ref)).toEqual(["lost"]);
    expect(await store.get([id])).toMatchObject([{ state: "claimed", abandoned: false, token: 3 }]);
  });

  it("is refused when it is another version, another's, or somebody has entered its line", async () => {
    const { store, ref, other } = await scene();
    await give(store, ref);
    expect(await store.claim([again(1)])).toMatchObject([{ answer: "free", record: { version: 2 } }]);
    expect(await store.claim([again(2, { fingerprint: "1:same " })])).toMatchObject([{ answer: "taken" }]);
    const waiter = ticket("thread");
    await store.queue(waiter);
    expect(await store.claim([again(2)])).toMatchObject([{ answer: "behind", record: { version: 2 } }]);
    await other.query("update twiceproof_line set lease_until = 1");
    expect(await store.claim([again(2)])).toEqual([{ answer: "won", token: 2 }]);
  });

  it.each(["for update", "lock in share mode"])(
    "is told to be another's without waiting for a transaction that has its row %s",
    async (mode) => {
      const { store, other } = await scene();
      await other.query("start transaction");
      await other.query(`select id from twiceproof_claims where ${row} ${mode}`);
      expect(await store.claim([again(7)])).toMatchObject([{ answer: "taken", record: { version: 1 } }]);
    },
  );
});
