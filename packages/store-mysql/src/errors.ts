import { isTwiceproofError, TwiceproofError } from "@twiceproof/core/store";

/** The server's error numbers are the same for MySQL and MariaDB up to 1900; the rest are of one of them. */
const duplicateKey = 1062;
const noSuchTable = 1146;
const blocked: ReadonlySet<number> = new Set([
  1205, // lock wait timeout
  1969, // MariaDB: max_statement_time
  3024, // MySQL: max_execution_time
  3572, // MySQL: nowait
]);
/** What passes by itself: the statement or the transaction was rolled back, and may be sent again. */
const passing: ReadonlySet<number> = new Set([
  1020, // MariaDB: the record has changed since the transaction's snapshot
  1213, // deadlock
]);
const notWritable: ReadonlySet<number> = new Set([
  1044, // access denied to the database
  1142, // no right on the table
  1143, // no right on a column
  1290, // read_only, super_read_only
  1792, // a read-only transaction
  1836, // read-only mode
]);
const explained: Readonly<Record<number, string>> = {
  1021: "The disk of the database server is full.",
  1040: "The database server has no connection left.",
  1114: "The table cannot grow: the disk or the tablespace of the database server is full.",
  1153: "A result is larger than max_allowed_packet of the database server.",
  1203: "The user has no connection left.",
  1226: "The user has used up a limit of the database server.",
  3675: "The disk of the database server is full.",
};

/** Null when neither the server nor the driver said it. */
function errorNumber(error: unknown): number | null {
  const { errno } = (error ?? {}) as { errno?: unknown };
  return error instanceof Error && typeof errno === "number" ? errno : null;
}

export function isDuplicateKey(error: unknown): boolean {
  return errorNumber(error) === duplicateKey;
}

/** Another transaction holds a row, for longer than the statement was willing to wait. */
export function isBlocked(error: unknown): boolean {
  return blocked.has(errorNumber(error) ?? 0);
}

export function isPassing(error: unknown): boolean {
  return isBlocked(error) || passing.has(errorNumber(error) ?? 0) || isOvertaken(error);
}

const overtakenMessage = "somebody else was faster";

/** Counts as passing: to be asked again, of what it is by then. */
export function overtaken(): Error {
  return new Error(overtakenMessage);
}

function isOvertaken(error: unknown): boolean {
  return error instanceof Error && error.message === overtakenMessage;
}

export function isNoSuchTable(error: unknown): boolean {
  return errorNumber(error) === noSuchTable;
}

/** What the driver threw, as ours. Anything that is not the driver's passes as it is. */
export function storeError(error: unknown): unknown {
  if (isTwiceproofError(error) || !(error instanceof Error)) return error;
  if (isOvertaken(error)) return unavailable("Others kept changing what was asked for.", error);
  if (error.message === "Pool is closed.")
    return new TwiceproofError("STORE_CLOSED", "The pool was closed.", { cause: error });
  const { code, fatal } = error as { code?: unknown; fatal?: unknown };
  const number = errorNumber(error);
  if (number === noSuchTable) return schemaMissing(error);
  if (number !== null && notWritable.has(number)) return readOnly(error);
  if (number !== null && explained[number] !== undefined) return unavailable(explained[number], error);
  if (number !== null && isPassing(error))
    return unavailable("Another transaction kept a row of the database locked for too long.", error);
  if (typeof code === "string") return unavailable(`The database could not be reached, or refused (${code}).`, error);
  // mysql2 gives no code to what its pool and its closed connections say.
  const ofDriver = fatal === true || /^(No connections available|Queue limit reached)|closed state/.test(error.message);
  return ofDriver ? unavailable("The database could not be reached.", error) : error;
}

export function schemaMissing(cause?: unknown): TwiceproofError {
  return new TwiceproofError("STORE_SCHEMA_MISSING", "The tables of Twiceproof are missing from the database.", {
    cause,
    help: "Run `await store.migrate()` once, or the SQL of `printMigrations()`, with the same prefix.",
  });
}

export function schemaNewer(found: number, known: number): TwiceproofError {
  return new TwiceproofError(
    "STORE_SCHEMA_NEWER",
    "This database was migrated by a newer version of Twiceproof; upgrade @twiceproof/store-mysql.",
    { help: `Schema ${found} was found, and this version knows ${known}. Nothing was changed.` },
  );
}

function readOnly(cause: unknown): TwiceproofError {
  return new TwiceproofError("STORE_READ_ONLY", "The database server accepts no writes.", {
    cause,
    help: "Connect to the primary: claims must never be read from or written to a replica.",
  });
}

export function unavailable(message: string, cause?: unknown, help?: string): TwiceproofError {
  return new TwiceproofError("STORE_UNAVAILABLE", message, { cause, ...(help !== undefined && { help }) });
}

export function closed(): TwiceproofError {
  return new TwiceproofError("STORE_CLOSED", "The store was closed.");
}

/** What stands in an open transaction is nobody's claim yet: an effect that ran on it could be forgotten. */
export function inTransaction(): TwiceproofError {
  return unavailable(
    "The connection is inside a transaction of the application, and nothing of ours may be written into that.",
    undefined,
    "Give the store a pool, or a connection of its own, with autocommit on.",
  );
}
