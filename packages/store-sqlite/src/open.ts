import { realpathSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { TwiceproofError } from "@twiceproof/core/store";
import { type Database, database, type SqliteHandle } from "./database.ts";
import { driverMissing } from "./errors.ts";
import { explainOpening, refuseNetworkPath } from "./path.ts";

/** How long one attempt may block the event loop. The longer waiting is done between attempts. */
const busyTimeoutMs = 50;

export interface Connection {
  readonly db: Database;
  /** To be called once. Closes the handle if we opened it and nobody else uses it. */
  release(): void;
}

interface OwnHandle extends SqliteHandle {
  close(): unknown;
}

interface Shared {
  users: number;
  readonly handle: Promise<OwnHandle>;
}

/**
 * One handle per file and process, by real path. It lives on `globalThis`, so that a module that is loaded again (hot
 * reload) or twice (two bundles) finds the handle that is there. The number goes up when the shape changes.
 */
const registryKey = Symbol.for("twiceproof.store-sqlite.handles/1");
const globals = globalThis as { [registryKey]?: Map<string, Shared> };

/** @throws TwiceproofError `INVALID_ARGUMENT` */
export function checkSource(source: string | URL | SqliteHandle): void {
  if (typeof source === "string" || source instanceof URL) pathOf(source);
  else if (typeof source?.exec !== "function" || typeof source.prepare !== "function") throw unusable();
}

export async function connect(source: string | URL | SqliteHandle): Promise<Connection> {
  if (typeof source !== "string" && !(source instanceof URL)) {
    const db = database(source);
    db.refuseInTransaction();
    db.exec("pragma synchronous = full");
    return { db, release: () => undefined };
  }
  const path = pathOf(source);
  if (path !== ":memory:") return share(realPath(resolve(path)));
  const handle = await openHandle(path);
  return { db: database(handle), release: () => void handle.close() };
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

async function share(path: string): Promise<Connection> {
  globals[registryKey] ??= new Map();
  const registry = globals[registryKey];
  const shared = registry.get(path) ?? { users: 0, handle: openHandle(path) };
  registry.set(path, shared);
  shared.users++;

  function isLast(): boolean {
    shared.users--;
    if (shared.users > 0) return false;
    if (registry.get(path) === shared) registry.delete(path);
    return true;
  }

  try {
    const handle = await shared.handle;
    return {
      db: database(handle),
      release() {
        if (isLast()) handle.close();
      },
    };
  } catch (error) {
    isLast();
    throw error;
  }
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
