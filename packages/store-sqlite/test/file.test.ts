import { copyFileSync, existsSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import Database from "better-sqlite3";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { sqliteStore } from "../src/index.ts";
import { child } from "./child.ts";
import { effect, opened, rejection, scratchFile, scratchFolder, storeOf, win } from "./scratch.ts";

/** As a restored backup does: another file under the same name. */
function replace(file: string): void {
  copyFileSync(file, `${file}.copy`);
  renameSync(`${file}.copy`, file);
  for (const suffix of ["-wal", "-shm"]) rmSync(file + suffix, { force: true });
}

function remove(file: string): void {
  for (const suffix of ["", "-wal", "-shm"]) rmSync(file + suffix, { force: true });
}

function keysIn(file: string): unknown[] {
  return opened(new Database(file, { readonly: true }))
    .prepare("select key from twiceproof_claims")
    .pluck()
    .all();
}

describe.each([
  ["replaced", replace],
  ["removed", remove],
] as const)("a file that is %s while it is open", (_, happens) => {
  it("gets no word more: a claim that only this process sees keeps nobody from doing the same", async () => {
    const file = scratchFile();
    const store = storeOf(file);
    const ref = await win(store, effect("order:1"));
    const old = opened(new Database(file, { readonly: true }));
    const traces = () => [old.pragma("data_version"), old.prepare("select * from twiceproof_claims").all()];
    const before = traces();
    happens(file);
    const replaced = { code: "STORE_FILE_REPLACED", message: expect.not.stringContaining(file) };
    expect(await rejection(store.claim([effect("order:2")]))).toMatchObject(replaced);
    expect(await rejection(store.renew([{ ...ref, leaseMs: 60_000 }]))).toMatchObject(replaced);
    expect(await rejection(store.settle([{ ...ref, state: "completed", payload: null }]))).toMatchObject(replaced);
    expect(await rejection(store.abandon(ref, "shutdown"))).toMatchObject(replaced);
    expect(traces()).toEqual(before);
  });

  it("is left alone by the next store of its path, which opens what is there now", async () => {
    const file = scratchFile();
    const store = storeOf(file);
    await store.migrate();
    happens(file);
    const [next, another] = [storeOf(file), storeOf(file)];
    await win(next, effect("order:1"));
    expect(await another.claim([effect("order:1")])).toMatchObject([{ answer: "taken" }]);
    expect(keysIn(file)).toEqual(["order:1"]);
    expect(await rejection(store.claim([effect("order:2")]))).toMatchObject({ code: "STORE_FILE_REPLACED" });
    // The old handle goes without taking the new file's -wal with it.
    await store.close();
    await win(another, effect("order:3"));
    expect(keysIn(file)).toEqual(["order:1", "order:3"]);
  });
});

it("is the one that its name meant when the store was made, wherever the process goes after", async () => {
  const [here, there] = [scratchFolder(), scratchFolder()];
  const before = process.cwd();
  onTestFinished(() => process.chdir(before));
  process.chdir(here);
  const stores = [sqliteStore("app.db"), sqliteStore("./app.db"), sqliteStore(pathToFileURL("app.db"))];
  process.chdir(there);
  for (const [index, store] of stores.entries()) await win(store, effect(`order:${index}`));
  for (const store of stores) await store.close();
  expect([existsSync(join(here, "app.db")), existsSync(join(there, "app.db"))]).toEqual([true, false]);
  expect(keysIn(join(here, "app.db"))).toHaveLength(3);
});

describe("behind a locked file", () => {
  it("many who wait keep the event loop no busier than one does", async () => {
    const file = scratchFile();
    const store = storeOf(file);
    await store.migrate();
    const locker = child("lock", file, "2600");
    expect(await locker.line()).toBe('"ready"');
    locker.go();
    expect(await locker.line()).toBe('"locked"');
    const busy = async (): Promise<number> => {
      const from = performance.eventLoopUtilization();
      await new Promise((resolve) => setTimeout(resolve, 1_000));
      return performance.eventLoopUtilization(from).utilization;
    };
    const first = win(store, effect("order:0"));
    const one = await busy();
    const others = Array.from({ length: 300 }, (_, index) => win(store, effect(`order:${index + 1}`)));
    const many = await busy();
    expect(many).toBeLessThan(1.3 * one + 0.1);
    expect(new Set((await Promise.all([first, ...others])).map(({ token }) => token))).toEqual(new Set([1]));
  });

  it("many whose time is over give up together, without another try of each", async () => {
    let aheadMs = 0;
    const { now } = performance;
    vi.resetModules();
    vi.spyOn(performance, "now").mockImplementation(() => now.call(performance) + aheadMs);
    const { sqliteStore: fresh } = await import("../src/index.ts");
    vi.restoreAllMocks();
    const file = scratchFile();
    await storeOf(file).migrate();
    const store = fresh(file);
    onTestFinished(() => store.close());
    await store.migrate();
    const other = opened(new Database(file));
    other.exec("begin immediate");
    const claims = Array.from({ length: 200 }, (_, index) => rejection(store.claim([effect(`order:${index}`)])));
    await new Promise((resolve) => setTimeout(resolve, 20));
    aheadMs = 10_001;
    const start = performance.now();
    for (const error of await Promise.all(claims)) expect(error).toMatchObject({ code: "STORE_UNAVAILABLE" });
    // One more try of each, of 50 ms, would take ten seconds.
    expect(performance.now() - start).toBeLessThan(3_000);
    other.exec("rollback");
    expect((await win(store, effect("order:0"))).token).toBe(1);
  });
});
