import { isTwiceproofError, TwiceproofError } from "@twiceproof/core/store";

/** SQLite's primary result codes, https://sqlite.org/rescode.html. better-sqlite3 gives the name, node:sqlite the number. */
const codes: Readonly<Record<number, string>> = {
  5: "SQLITE_BUSY",
  6: "SQLITE_LOCKED",
  8: "SQLITE_READONLY",
  10: "SQLITE_IOERR",
  11: "SQLITE_CORRUPT",
  13: "SQLITE_FULL",
  14: "SQLITE_CANTOPEN",
  15: "SQLITE_PROTOCOL",
  19: "SQLITE_CONSTRAINT",
  26: "SQLITE_NOTADB",
};

/** The name of SQLite's result code, without what follows the primary code; null when SQLite did not say it. */
export function sqliteCode(error: unknown): string | null {
  if (!(error instanceof Error)) return null;
  const { code, errcode } = error as { code?: unknown; errcode?: unknown };
  if (code === "ERR_SQLITE_ERROR" && typeof errcode === "number") return codes[errcode & 0xff] ?? "SQLITE_ERROR";
  return typeof code === "string" && code.startsWith("SQLITE_") ? code.split("_", 2).join("_") : null;
}

/** What passes by itself: another writer, a checkpoint, or a transaction or query of the user's on the same handle. */
export function isBusy(error: unknown): boolean {
  const code = sqliteCode(error);
  return code === "SQLITE_BUSY" || code === "SQLITE_LOCKED" || code === "SQLITE_PROTOCOL" || isInTransaction(error);
}

/** Raised for a handle that the user has put into a transaction; drivers without a flag for it say so only when asked to begin. */
const inTransactionMessage = "cannot start a transaction within a transaction";

function isInTransaction(error: unknown): boolean {
  return (
    error instanceof Error &&
    (error.message.includes(inTransactionMessage) || error.message.includes("connection is busy executing a query"))
  );
}

function isClosed(error: unknown): boolean {
  return error instanceof Error && /database (connection )?is not open/.test(error.message);
}

/** What the driver threw, as ours. Anything that is not the driver's passes as it is. */
export function storeError(error: unknown): unknown {
  if (isTwiceproofError(error)) return error;
  if (isClosed(error)) return new TwiceproofError("STORE_CLOSED", "The database handle was closed.", { cause: error });
  if (isInTransaction(error))
    return unavailable(
      "The database handle is inside a transaction or a query of the application, and nothing may be written into that.",
      error,
      "Give the store a handle of its own, or end the transaction before an effect is called.",
    );
  const code = sqliteCode(error);
  switch (code) {
    case null:
      return error;
    case "SQLITE_NOTADB":
      return new TwiceproofError("STORE_NOT_A_DATABASE", "The file is not an SQLite database.", { cause: error });
    case "SQLITE_READONLY":
      return readOnly(error);
    case "SQLITE_FULL":
      return unavailable("The disk is full, or the database has reached its page limit.", error);
    case "SQLITE_CORRUPT":
      return unavailable("SQLite reports that the database file is damaged.", error);
    case "SQLITE_BUSY":
    case "SQLITE_LOCKED":
    case "SQLITE_PROTOCOL":
      return unavailable("Another process kept the database locked for too long.", error);
  }
  return unavailable(`SQLite refused the statement (${code}).`, error);
}

export function readOnly(cause: unknown, help?: string): TwiceproofError {
  const message = "The database cannot be written: the file, its folder or the handle is read-only.";
  return new TwiceproofError("STORE_READ_ONLY", message, { cause, ...(help !== undefined && { help }) });
}

function unavailable(message: string, cause?: unknown, help?: string): TwiceproofError {
  return new TwiceproofError("STORE_UNAVAILABLE", message, { cause, ...(help !== undefined && { help }) });
}

export function closed(): TwiceproofError {
  return new TwiceproofError(
    "STORE_CLOSED",
    "The store was closed, perhaps by the `close` of another createTwiceproof that was given the same store.",
  );
}

export function fileReplaced(path: string): TwiceproofError {
  return new TwiceproofError(
    "STORE_FILE_REPLACED",
    "The database file was replaced or removed while it was open: nothing was written.",
    { help: `Restart this process, so that it opens ${path} again.` },
  );
}

export function driverMissing(cause: unknown): TwiceproofError {
  return new TwiceproofError(
    "STORE_DRIVER_MISSING",
    "The package better-sqlite3 could not be loaded: install it (and leave it out of bundles), or give an open handle.",
    {
      cause,
      help: "`npm install better-sqlite3`; for a bundler, mark it as external; or give sqliteStore a DatabaseSync of node:sqlite.",
    },
  );
}

/** Counts as busy: a user's transaction ends by itself. */
export function busyInTransaction(): Error {
  return new Error(inTransactionMessage);
}
