import { statSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import Database from "better-sqlite3";
import { expect, it, onTestFinished, vi } from "vitest";
import { child } from "./child.ts";
import { effect, opened, rejection, scratchFile, storeOf, win } from "./scratch.ts";

const { setImmediate } = globalThis;

it("gives each key one winner among processes", async () => {
  const file = scratchFile();
  const children = [1, 2, 3, 4].map(() => child("race", file, "300"));
  for (const each of children) expect(await each.line()).toBe('"ready"');
  for (const each of children) each.go();
  const won = await Promise.all(children.map(async (each) => JSON.parse(await each.line()) as string[]));
  expect(won.flat().length).toBe(300);
  expect(new Set(won.flat()).size).toBe(300);
});

it("does not block the event loop while another process holds the write lock", async () => {
  const file = scratchFile();
  const store = storeOf(file);
  const held = await win(store, effect("held"));
  const locker = child("lock", file, "1000");
  expect(await locker.line()).toBe('"ready"');
  locker.go();
  expect(await locker.line()).toBe('"locked"');
  const longestBlock = watchEventLoop();
  const start = performance.now();
  const claims = Array.from({ length: 50 }, (_, index) => win(store, effect(`order:${index}`)));
  const renewed = store.renew([{ ...held, leaseMs: 60_000 }]);
  await Promise.all(claims);
  expect(await renewed).toEqual(["held"]);
  expect(performance.now() - start).toBeGreaterThan(500);
  // One attempt waits for 50 ms; a machine under load adds its own.
  expect(longestBlock()).toBeLessThan(400);
});

/** The longest time, in milliseconds, that passed between two turns until it is asked, the last one included. */
function watchEventLoop(): () => number {
  let longest = 0;
  let last = performance.now();
  function tick(): void {
    longest = Math.max(longest, performance.now() - last);
    last = performance.now();
  }
  const interval = setInterval(tick, 1);
  return () => {
    clearInterval(interval);
    tick();
    return longest;
  };
}

it("goes on waiting under the fake timers of a user's test", async () => {
  const file = scratchFile();
  const store = storeOf(file);
  await store.migrate();
  const other = opened(new Database(file));
  other.exec("begin immediate");
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const claim = win(store, effect("order:1"));
  await turns();
  other.exec("rollback");
  expect((await claim).token).toBe(1);
});

it("answers a replay while another process holds the write lock", async () => {
  const file = scratchFile();
  const store = storeOf(file);
  const request = effect("order:1");
  const ref = await win(store, request);
  await store.settle([{ ...ref, state: "completed", payload: { format: "json", text: "42" } }]);
  const other = opened(new Database(file));
  other.exec("begin immediate");
  expect(await store.claim([effect("order:1")])).toMatchObject([
    { answer: "taken", record: { state: "completed", payload: { format: "json", text: "42" } } },
  ]);
  expect(other.inTransaction).toBe(true);
});

it("writes nothing for a replay", async () => {
  const file = scratchFile();
  const db = opened(new Database(file));
  db.pragma("journal_mode = wal");
  const store = storeOf(db);
  const keys = Array.from({ length: 50 }, (_, index) => `order:${index}`);
  for (const key of keys)
    await store.settle([{ ...(await win(store, effect(key))), state: "completed", payload: null }]);
  const outside = opened(new Database(file));
  const traces = () => [
    outside.pragma("data_version"),
    db.prepare("select total_changes() as changes").get(),
    statSync(`${file}-wal`).size,
  ];
  const before = traces();
  for (let round = 0; round < 10; round++) {
    const answers = await store.claim(keys.map((key) => effect(key)));
    expect(answers.every((each) => each.answer === "taken")).toBe(true);
  }
  expect(traces()).toEqual(before);
  await win(store, effect("another"));
  expect(traces()).not.toEqual(before);
});

it("keeps what people look for in columns that plain SQL can read", async () => {
  const db = opened(new Database(scratchFile()));
  const store = storeOf(db);
  const ref = await win(store, effect("order:1", { scope: "thread-7", turn: "turn-1", runId: "run-9" }));
  await store.settle([{ ...ref, state: "completed", payload: { format: "json", text: '{"charge":"ch_1"}' } }]);
  const row = db.prepare(
    "select kind, key, scope, run_id, state, result ->> 'charge' as charge from twiceproof_claims",
  );
  expect(row.get()).toEqual({
    kind: "effect",
    key: "order:1",
    scope: "thread-7",
    run_id: "run-9",
    state: "completed",
    charge: "ch_1",
  });
});

const drivers = {
  "better-sqlite3": (file: string) => opened(new Database(file)),
  "node:sqlite": (file: string) => opened(new DatabaseSync(file, { timeout: 50 })),
};

/** A driver that has no flag for an open transaction. */
function flagless(file: string): Pick<Database.Database, "prepare" | "exec"> {
  const db = opened(new Database(file));
  return { exec: db.exec.bind(db), prepare: db.prepare.bind(db) as Database.Database["prepare"] };
}

it.each(Object.entries({ ...drivers, "a driver without a flag for it": flagless }))(
  "stays out of a transaction that the application has open on its handle: %s",
  async (_, open) => {
    const handle = open(scratchFile());
    const store = storeOf(handle);
    await store.migrate();
    handle.exec("create table orders (id integer primary key); begin; insert into orders values (7)");
    let claimed = false;
    const claim = win(store, effect("order:7")).then((ref) => {
      claimed = true;
      return ref;
    });
    await turns();
    expect(claimed).toBe(false);
    handle.exec("rollback");
    const { id, token } = await claim;
    expect(token).toBe(1);
    expect((await store.get([id]))[0]?.key).toBe("order:7");
    expect(handle.prepare("select id from orders").all()).toEqual([]);
  },
);

it.each(Object.entries(drivers))(
  "does not read in a transaction of the application, whose snapshot may be old: %s",
  async (_, open) => {
    const file = scratchFile();
    const first = open(file);
    first.exec("pragma journal_mode = wal");
    const writer = storeOf(first);
    const ref = await win(writer, effect("order:1"));
    const db = open(file);
    const reader = storeOf(db);
    await reader.migrate();
    db.exec("begin");
    db.prepare("select count(*) from twiceproof_claims").all();
    await writer.renew([{ ...ref, leaseMs: 60_000 }]);
    const found = reader.get([ref.id]);
    const claimed = reader.claim([effect("order:1")]);
    await turns();
    db.exec("commit");
    const [current] = await writer.get([ref.id]);
    const expected = { leaseUntil: current?.leaseUntil, version: current?.version };
    expect(await found).toMatchObject([expected]);
    expect(await claimed).toMatchObject([{ answer: "taken", record: expected }]);
  },
);

/** Of the event loop: enough for a call that does not have to wait. */
async function turns(): Promise<void> {
  for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve));
}

it("gives up after ten seconds, and says what was in the way", { timeout: 30_000 }, async () => {
  const busy = opened(new Database(scratchFile()));
  const store = storeOf(busy);
  await store.migrate();
  busy.exec("begin");
  const file = scratchFile();
  const blocked = storeOf(file);
  await blocked.migrate();
  const other = opened(new Database(file));
  other.exec("begin immediate");
  const [inTransaction, locked, behind] = await Promise.all(
    [store.claim([effect("order:1")]), blocked.claim([effect("order:1")]), blocked.claim([effect("order:2")])].map(
      rejection,
    ),
  );
  expect(inTransaction).toMatchObject({ code: "STORE_UNAVAILABLE", message: expect.stringContaining("transaction") });
  for (const error of [locked, behind])
    expect(error).toMatchObject({ code: "STORE_UNAVAILABLE", cause: expect.objectContaining({ code: "SQLITE_BUSY" }) });
  expect(busy.inTransaction).toBe(true);
  other.exec("rollback");
  expect((await win(blocked, effect("order:1"))).token).toBe(1);
});
