import Database from "better-sqlite3";
import { expect } from "vitest";
import { it, leaseMs, type Place, until } from "./support/place.ts";
import type { Worker } from "./support/spawn.ts";

const key = "order:1";

/** This process takes SQLite's write lock, as a backup or a migration would, and keeps it. */
function lockDatabase(here: Place): { readonly release: () => number } {
  const db = new Database(here.file, { timeout: 20_000 });
  db.exec("begin exclusive");
  const since = performance.now();
  return {
    release() {
      db.exec("commit");
      db.close();
      return performance.now() - since;
    },
  };
}

/** One that has the database open already. */
async function startWarm(here: Place, setup: Parameters<Place["start"]>[0]): Promise<Worker> {
  const worker = await here.start(setup);
  await worker.ask("exclusive", { key: "warm" });
  await worker.stoodStillMs();
  return worker;
}

it("17: a store that does not answer before the effect: it does not run, and the event loop goes on", async ({
  here,
}) => {
  const worker = await startWarm(here, { storeTimeoutMs: 2_000 });
  const lock = lockDatabase(here);
  expect(await worker.ask("once", { key })).toMatchObject({ code: "STORE_UNAVAILABLE" });
  const stoodStillMs = await worker.stoodStillMs();
  const heldMs = lock.release();
  expect(heldMs).toBeGreaterThan(1_900);
  expect(stoodStillMs).toBeLessThan(heldMs / 2);
  expect(here.acts(key)).toBe(0);

  // The claim may still land after its caller was sent away: it is released, and no doubt is left.
  expect(await worker.ask("once", { key })).toMatchObject({ value: { key } });
  expect(await here.effect(key)).toMatchObject({ state: "completed" });
  expect(here.acts(key)).toBe(1);
});

it("17: a database that is locked before it was ever opened: the effect does not run", async ({ here }) => {
  const worker = await here.start({ storeTimeoutMs: 1_000 });
  const lock = lockDatabase(here);
  expect(await worker.ask("once", { key })).toMatchObject({ code: "STORE_UNAVAILABLE" });
  expect(here.acts(key)).toBe(0);
  lock.release();
  expect(await worker.ask("once", { key })).toMatchObject({ value: { key } });
  expect(here.acts(key)).toBe(1);
});

it("17: a store that does not answer after the effect: the record is retried until it does", async ({ here }) => {
  const worker = await startWarm(here, { stopAt: ["before record"], storeTimeoutMs: 1_500 });
  const call = worker.ask("once", { key });
  await worker.at("before record");
  const lock = lockDatabase(here);
  worker.pass("before record", "for good");
  await until("a second try", async () => (await worker.trace()).filter((it) => it === "before record").length > 1);
  const stoodStillMs = await worker.stoodStillMs();
  const heldMs = lock.release();
  expect(await call).toMatchObject({ value: { key } });
  expect(stoodStillMs).toBeLessThan(heldMs / 2);
  expect(await here.effect(key)).toMatchObject({ state: "completed" });
  expect(here.acts(key)).toBe(1);
});

it("17: a store that stays away after the effect: the caller is told of the doubt, with the value", async ({
  here,
}) => {
  const [worker, other] = await Promise.all([
    startWarm(here, { stopAt: ["before record"], storeTimeoutMs: 400 }),
    here.start(),
  ]);
  const call = worker.ask("once", { key, leaseMs });
  await worker.at("before record");
  const lock = lockDatabase(here);
  worker.pass("before record", "for good");
  const told = await call;
  expect(told).toMatchObject({ code: "EFFECT_IN_DOUBT", returned: { key, pid: worker.pid } });
  expect(here.acts(key)).toBe(1);
  lock.release();

  // Another is told of the doubt, or gets the result if a statement that was given up has landed after all.
  const seen = await other.ask("once", { key });
  if ("value" in seen) expect(seen.value).toEqual("returned" in told && told.returned);
  else expect(seen).toMatchObject({ code: "EFFECT_IN_DOUBT" });
  expect(here.acts(key)).toBe(1);
});

it("9: a store that stays away for longer than the lease in the middle of an effect: it completes", async ({
  here,
}) => {
  const worker = await startWarm(here, { stopAt: ["acted"] });
  const call = worker.ask("once", { key, leaseMs });
  await worker.at("acted");
  const lock = lockDatabase(here);
  await here.doubt(key);
  worker.pass("acted");
  lock.release();
  expect(await call).toMatchObject({ value: { key } });
  expect(await here.effect(key)).toMatchObject({ state: "completed", token: 1 });
  expect(here.acts(key)).toBe(1);
});

it("11: a store that stays away for longer than the lease of a run: the run stops itself, and starts nothing", async ({
  here,
}) => {
  const worker = await startWarm(here, { stopAt: ["run"] });
  const run = worker.ask("run", { thread: "t", runId: "first", leaseMs, calls: [{ key }] });
  await worker.at("run");
  const lock = lockDatabase(here);
  await worker.at("run aborted");
  lock.release();
  worker.pass("run");
  expect(await run).toMatchObject({ code: "RUN_LOST", returned: { outcomes: [{ code: "RUN_LOST" }] } });
  expect(here.acts(key)).toBe(0);
});
