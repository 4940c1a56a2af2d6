import type { ClaimRef, Store } from "@twiceproof/core/store";
import { claimId, randomId } from "@twiceproof/core/store";
import Database from "better-sqlite3";
import { expect, it } from "vitest";
import { effect, opened, scratchFile, storeOf, win } from "./scratch.ts";

/** Promise 14, for what somebody else writes in the same file. */
const lock = (more: Parameters<typeof effect>[1] = {}) =>
  effect("thread", { id: claimId("test", "lock", "thread"), kind: "lock", ...more });

async function scene() {
  const file = scratchFile();
  const store = storeOf(file);
  const fence = await win(store, lock());
  return { store, fence, writer: opened(new Database(file)) };
}

function holds(store: Store, writer: Database.Database, fence: ClaimRef): boolean {
  const { text, values } = store.fenceStatement?.(fence) ?? expect.fail();
  return writer.prepare(text).get(...values) !== undefined;
}

it("the fence's statement holds while this very claim does, and also when its lease is over and nobody took it", async () => {
  const { store, fence, writer } = await scene();
  expect(holds(store, writer, fence)).toBe(true);
  expect(holds(store, writer, { ...fence, attemptId: randomId() })).toBe(false);
  expect(holds(store, writer, { ...fence, token: fence.token + 1 })).toBe(false);
  expect(holds(store, writer, await win(store, effect("order")))).toBe(false);
  writer.exec("update twiceproof_claims set lease_until = 0");
  expect(holds(store, writer, fence)).toBe(true);
  await store.abandon(fence, "shutdown");
  expect(holds(store, writer, fence)).toBe(false);
});

it("a takeover waits for the transaction that the fence's statement stands in, and then it does not hold", async () => {
  const { store, fence, writer } = await scene();
  writer.exec("update twiceproof_claims set lease_until = 0");
  const [record] = await store.get([fence.id]);
  writer.exec("begin immediate");
  expect(holds(store, writer, fence)).toBe(true);
  let taken = false;
  const takeover = win(store, lock({ seen: record?.version ?? 0 })).then(() => {
    taken = true;
  });
  // Reads are let through: by then a takeover that waited for nothing would be there.
  for (let look = 0; look < 20; look++) expect(await store.get([fence.id])).toMatchObject([{ token: fence.token }]);
  expect(taken).toBe(false);
  writer.exec("commit");
  await takeover;
  expect(holds(store, writer, fence)).toBe(false);
});

it("a renewal goes on right after it", async () => {
  const { store, fence, writer } = await scene();
  writer.exec("begin immediate");
  expect(holds(store, writer, fence)).toBe(true);
  const renewed = store.renew([{ ...fence, leaseMs: 60_000 }]);
  writer.exec("commit");
  expect(await renewed).toEqual(["held"]);
});
