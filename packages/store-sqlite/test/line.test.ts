import { randomId } from "@twiceproof/core/store";
import Database from "better-sqlite3";
import { expect, it } from "vitest";
import { effect, opened, scratchFile, storeOf, win } from "./scratch.ts";

const lock = effect("thread", { kind: "lock" });
const ticket = () => ({
  ...{ id: lock.id, ticketId: randomId(), runId: null, holder: "waiter-1", leaseMs: 60_000, maxQueue: 9 },
});

it("tells a place that is kept while another process holds the write lock, and writes nothing for it", async () => {
  const file = scratchFile();
  const store = storeOf(file);
  await win(store, lock);
  const mine = ticket();
  await store.queue(ticket());
  await store.queue(mine);
  const other = opened(new Database(file));
  const version = () => other.pragma("data_version");
  const before = version();
  other.exec("begin immediate");
  for (let round = 0; round < 3; round++)
    expect(await store.queue(mine)).toMatchObject({ ahead: 1, record: { state: "claimed" } });
  expect(await store.queue({ ...ticket(), maxQueue: 2 })).toEqual({ answer: "full", depth: 2 });
  other.exec("rollback");
  expect(version()).toEqual(before);
  await store.queue({ ...mine, leaseMs: 120_000 });
  expect(version()).not.toEqual(before);
});

it("keeps no row of those who are gone for longer than until the next one enters", async () => {
  const db = opened(new Database(scratchFile()));
  const store = storeOf(db);
  for (let round = 0; round < 5; round++) await store.queue({ ...ticket(), leaseMs: 1 });
  const { now } = await store.health();
  while ((await store.health()).now <= now + 1);
  expect(await store.queue(ticket())).toMatchObject({ ahead: 0 });
  expect(db.prepare("select count(*) as waiting from twiceproof_line").get()).toEqual({ waiting: 1 });
});
