import { chmodSync, closeSync, mkdirSync, openSync, readFileSync, writeFileSync, writeSync } from "node:fs";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import Database from "better-sqlite3";
import { describe, expect, it, onTestFinished } from "vitest";
import { type SqliteHandle, sqliteStore } from "../src/index.ts";
import { child } from "./child.ts";
import { effect, opened, rejection, scratchFile, scratchFolder, storeOf, win } from "./scratch.ts";

async function refusal(source: string | URL | SqliteHandle): Promise<{ code: string; message: string; help: string }> {
  const error = (await rejection(storeOf(source).claim([effect("order:1")]))) as {
    code: string;
    message: string;
    help: string;
  };
  expect(error.message).not.toContain("/");
  return error;
}

describe("a source that cannot be used says so, without its path", () => {
  it("a file that is no database", async () => {
    const [file, other] = [scratchFile(), scratchFile()];
    for (const each of [file, other]) writeFileSync(each, "these are minutes of a meeting\n".repeat(200));
    const { code, help } = await refusal(file);
    expect(code).toBe("STORE_NOT_A_DATABASE");
    expect(help).toContain(file);
    expect((await refusal(opened(new DatabaseSync(other)))).code).toBe("STORE_NOT_A_DATABASE");
  });

  it("a folder", async () => {
    expect((await refusal(scratchFolder())).code).toBe("STORE_NOT_A_DATABASE");
  });

  it("a file in a folder that is not there; usable as soon as it is", async () => {
    const file = join(scratchFolder(), "data", "app.db");
    const store = storeOf(file);
    expect(await rejection(store.claim([effect("order:1")]))).toMatchObject({
      code: "STORE_PATH_MISSING",
      message: expect.stringContaining("does not exist"),
      help: expect.stringContaining(dirname(file)),
    });
    mkdirSync(dirname(file));
    expect((await win(store, effect("order:1"))).token).toBe(1);
  });

  it("a URL that names no file or asks for options, and what is no handle", async () => {
    const unusable = [
      new URL("https://example.com/app.db"),
      "file:app.db",
      "file:///tmp/app.db?mode=ro",
      "",
      {},
      undefined,
      null,
      5,
      Promise.resolve("app.db"),
    ];
    for (const source of unusable)
      expect(() => sqliteStore(source as never)).toThrow(expect.objectContaining({ code: "INVALID_ARGUMENT" }));
  });

  it("a handle that may only read, of either driver, with the schema or without", async () => {
    for (const migrated of [false, true]) {
      const files = [scratchFile(), scratchFile()] as const;
      for (const file of files) {
        const db = new Database(file);
        db.exec("create table orders (id integer primary key)");
        if (migrated) await storeOf(db).migrate();
        db.close();
      }
      expect((await refusal(opened(new Database(files[0], { readonly: true })))).code).toBe("STORE_READ_ONLY");
      expect((await refusal(opened(new DatabaseSync(files[1], { readOnly: true })))).code).toBe("STORE_READ_ONLY");
    }
  });

  it("a folder, or a file, without the right to write", async () => {
    const folder = scratchFolder();
    const file = join(folder, "app.db");
    onTestFinished(() => chmodSync(folder, 0o755));
    chmodSync(folder, 0o555);
    expect(JSON.parse(await child("unprivileged", file).line())).toMatchObject({ code: "STORE_READ_ONLY" });
    chmodSync(folder, 0o755);
    await storeOf(file).migrate();
    chmodSync(file, 0o444);
    expect(JSON.parse(await child("unprivileged", file).line())).toMatchObject({ code: "STORE_READ_ONLY" });
    chmodSync(folder, 0o555);
    expect(JSON.parse(await child("unprivileged", file).line())).toMatchObject({ code: "STORE_READ_ONLY" });
  });

  it("a path, when better-sqlite3 is not installed", async () => {
    const answer = JSON.parse(await child("driverless", scratchFile()).line());
    expect(answer).toEqual({
      code: "STORE_DRIVER_MISSING",
      message: expect.stringContaining("better-sqlite3 could not be loaded: install it"),
    });
  });

  it("a handle that was closed", async () => {
    for (const handle of [new Database(":memory:"), new DatabaseSync(":memory:")]) {
      const store = storeOf(handle);
      await win(store, effect("order:1"));
      handle.close();
      expect(await rejection(store.claim([effect("order:2")]))).toMatchObject({ code: "STORE_CLOSED" });
    }
  });
});

it("a full disk is told, and a record can be sent again when there is room", async () => {
  for (const db of [opened(new Database(scratchFile())), opened(new DatabaseSync(scratchFile()))]) {
    const store = storeOf(db);
    const ref = await win(store, effect("order:1"));
    const { page_count: pages } = db.prepare("pragma page_count").get() as { page_count: number };
    db.exec(`pragma max_page_count = ${pages}`);
    const settlement = {
      ...ref,
      state: "completed",
      payload: { format: "json", text: "x".repeat(1_000_000) },
    } as const;
    expect(await rejection(store.settle([settlement]))).toMatchObject({
      code: "STORE_UNAVAILABLE",
      message: expect.stringContaining("full"),
      cause: expect.objectContaining({ message: "database or disk is full" }),
    });
    expect((await store.get([ref.id]))[0]?.state).toBe("claimed");
    db.exec(`pragma max_page_count = ${pages + 1_000}`);
    expect(await store.settle([settlement])).toEqual(["settled"]);
  }
});

it("a damaged file is told, with what the driver said", async () => {
  const file = scratchFile();
  const db = new Database(file);
  await win(storeOf(db), effect("order:1"));
  db.close();
  const pages = readFileSync(file).length / 4096;
  const descriptor = openSync(file, "r+");
  for (let page = 1; page < pages; page++) writeSync(descriptor, Buffer.alloc(4096, 0xa5), 0, 4096, page * 4096);
  closeSync(descriptor);
  expect(await rejection(storeOf(file).claim([effect("order:1")]))).toMatchObject({
    code: "STORE_UNAVAILABLE",
    message: expect.stringContaining("damaged"),
    cause: expect.objectContaining({ code: "SQLITE_CORRUPT" }),
  });
});
