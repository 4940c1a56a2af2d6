import { realpathSync, statSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { TwiceproofError } from "@twiceproof/core/store";
import { type Database, database, type SqliteHandle } from "./database.ts";
import { driverMissing, fileReplaced } from "./errors.ts";
import { explainOpening, refuseNetworkPath } from "./path.ts";

/** How long one attempt may block the event loop. The longer waiting is done between attempts. */
const busyTimeoutMs = 50;

export interface Connection {
  readonly db: Database;
  /**
   * Before anything is written: a file that was replaced or removed is another database for everybody else, and a claim in
   * the old one keeps nobody from doing the same.
   *
   * @throws TwiceproofError `STORE_FILE_REPLACED`
   */
  checkFile(): void;
  /** To be called once. Closes the handle if we opened it and nobody else uses it. */
  release(): void;
}

interface OwnHandle extends SqliteHandle {
  close(): unknown;
}

interface Shared {
  users: number;
  readonly opened: Promise<{ readonly handle: OwnHandle; readonly file: string }>;
}

/**
 * One handle per file and process, by real path. It lives on `globalThis`, so that a module that is loaded again (hot
 * reload) or twice (two bundles) finds the handle that is there. The number goes up when the shape changes.
 */
const registryKey = Symbol.for("twiceproof.store-sqlite.handles/1");
const globals = globalThis as { [registryKey]?: Map<string, Shared> };

/** @throws TwiceproofError `INVALID_ARGUMENT` */
export function checked(source: string | URL | SqliteHandle): string | SqliteHandle {
  if (typeof source === "string" || source instanceof URL) {
    const path = pathOf(source);
    // Now, and not at the first call: a process may change its directory in between.
    // Without the mark, Next's bundler counts every file of an application as part of its server.
    return path === ":memory:" ? path : resolve(/*turbopackIgnore: true*/ path);
  }
  if (typeof source?.exec !== "function" || typeof source.prepare !== "function") throw unusable();
  return source;
}

export async function connect(source: string | SqliteHandle): Promise<Connection> {
  if (typeof source !== "string") {
    const db = database(source);
    db.refuseInTransaction();
    db.exec("pragma synchronous = full");
    return { db, checkFile: () => undefined, release: () => undefined };
  }
  if (source !== ":memory:") return share(source);
  const handle = await openHandle(source);
  return { db: database(handle), checkFile: () => undefined, release: () => void handle.close() };
}

function pathOf(source: string | URL): string {
  if (source === "") throw unusable();
  if (typeof source === "string" && !source.startsWith("file:")) return source;
  const { href, search } = new URL(source);
  if (href.startsWith("file:") && search === "" && String(source).startsWith("file://")) return fileURLToPath(href);
  throw unusable();
}

function unusable(): TwiceproofError {
  return new TwiceproofError("INVALID_ARGUMENT", "Give a path, a file: URL without a query, or an open handle.");
}

async function share(given: string): Promise<Connection> {
  const path = realPath(given);
  globals[registryKey] ??= new Map();
  const registry = globals[registryKey];
  const shared = registry.get(path) ?? { users: 0, opened: openFile(path) };
  registry.set(path, shared);
  shared.users++;

  function isLast(): boolean {
    shared.users--;
    if (shared.users > 0) return false;
    if (registry.get(path) === shared) registry.delete(path);
    return true;
  }

  try {
    const { handle, file } = await shared.opened;
    if (fileAt(path) !== file) {
      if (registry.get(path) === shared) registry.delete(path);
      if (isLast()) handle.close();
      return await share(given);
    }
    return {
      db: database(handle),
      checkFile() {
        if (fileAt(path) !== file) throw fileReplaced(path);
      },
      release() {
        if (isLast()) handle.close();
      },
    };
  } catch (error) {
    isLast();
    throw error;
  }
}

async function openFile(path: string): Promise<{ readonly handle: OwnHandle; readonly file: string }> {
  const handle = await openHandle(path);
  return { handle, file: fileAt(path) };
}

/** Which file it is that has this name now. */
function fileAt(path: string): string {
  const found = statSync(path, { bigint: true, throwIfNoEntry: false });
  return found === undefined ? "" : `${found.dev}:${found.ino}`;
}

async function openHandle(path: string): Promise<OwnHandle> {
  const Driver = await loadDriver();
  const inMemory = path === ":memory:";
  if (!inMemory) refuseNetworkPath(path);
  let handle: OwnHandle | undefined;
  try {
    handle = new Driver(path, { timeout: busyTimeoutMs });
    if (!inMemory) handle.exec("pragma journal_mode = wal");
    handle.exec("pragma synchronous = full");
    return handle;
  } catch (error) {
    handle?.close();
    throw explainOpening(error, path);
  }
}

async function loadDriver(): Promise<new (path: string, options: { readonly timeout: number }) => OwnHandle> {
  try {
    const { default: Driver } = await import("better-sqlite3");
    // Its native half is loaded only now.
    new Driver(":memory:").close();
    return Driver;
  } catch (cause) {
    throw driverMissing(cause);
  }
}

/** Also of a file that does not exist yet. What is out of reach is left for the opening to explain. */
function realPath(path: string): string {
  for (const [existing, rest] of [
    [path, ""],
    [dirname(path), basename(path)],
  ] as const) {
    try {
      return join(realpathSync.native(existing), rest);
    } catch {
      // Not there yet.
    }
  }
  return path;
}
