import { isTwiceproofError, TwiceproofError } from "@twiceproof/core/store";

/**
 * The five characters by which a server names an error, also where a driver or an ORM has wrapped it; null when it was not
 * the server that spoke. https://www.postgresql.org/docs/current/errcodes-appendix.html
 */
export function sqlState(error: unknown): string | null {
  for (let each = error, depth = 0; typeof each === "object" && each !== null && depth < 5; depth++) {
    const { code, meta, cause } = each as { code?: unknown; meta?: { code?: unknown }; cause?: unknown };
    for (const said of [code, meta?.code]) if (isState(said)) return said;
    each = cause;
  }
  return null;
}

/** Node's own codes, such as EPIPE, have no digit. */
function isState(code: unknown): code is string {
  return typeof code === "string" && /^(?=.*\d)[0-9A-Z]{5}$/.test(code);
}

/** What passes by itself and has changed nothing: a serialization failure, a deadlock, a lock timeout, an open transaction. */
export function isPassing(error: unknown): boolean {
  const state = sqlState(error);
  return state === "40001" || state === "40P01" || state === "55P03" || isOpenTransaction(error);
}

const openTransactionMessage = "the client is inside of a transaction";

/** Counts as passing: a transaction ends. */
export function openTransaction(): Error {
  return new Error(openTransactionMessage);
}

function isOpenTransaction(error: unknown): boolean {
  return error instanceof Error && (error.message === openTransactionMessage || sqlState(error) === "25P02");
}

/** What two migrators may do to each other: the one that comes second finds it done. */
export function isDoneByAnother(error: unknown): boolean {
  const state = sqlState(error);
  return (
    // Unique violation (of the catalogue), duplicate table, object, schema, column; a catalogue row written by both.
    ["23505", "42P07", "42710", "42P06", "42701"].includes(state ?? "") ||
    (state === "XX000" && error instanceof Error && error.message.includes("concurrently"))
  );
}

export function isMissing(error: unknown): boolean {
  const state = sqlState(error);
  return state === "42P01" || state === "3F000";
}

/** What the client threw, as ours. The text of the driver's error may hold a key, and is only the cause. */
export function storeError(error: unknown): TwiceproofError {
  if (isTwiceproofError(error)) return error;
  if (isOpenTransaction(error))
    return unavailable(
      "The client is inside of a transaction of the application, and nothing may be recorded in that.",
      error,
      "Give the store a Pool, or a client of its own.",
    );
  if (isEnded(error)) return new TwiceproofError("STORE_CLOSED", "The client or pool was closed.", { cause: error });
  const state = sqlState(error);
  if (state === null) return unavailable("The server could not be reached.", error);
  switch (state) {
    case "42P01":
    case "3F000":
    case "42703":
    case "42883":
      return schemaMissing(error);
    case "25006":
      return readOnly("The connection may only read: its transactions are set to be read-only.", error);
    case "42501":
      return readOnly("The connection's role lacks a right that the store needs.", error);
    case "53100":
      return unavailable("The server's disk is full.", error);
    case "53300":
      return unavailable("The server has too many connections.", error);
    case "57014":
      return unavailable("The statement was cancelled, or took longer than the connection allows.", error);
  }
  if (isPassing(error)) return unavailable("Other transactions were in the way for too long.", error);
  if (state.startsWith("08") || state.startsWith("57P"))
    return unavailable("The server ended the connection, or is starting or stopping.", error);
  return unavailable(`PostgreSQL refused the statement (${state}).`, error);
}

/** Of a pool or client that the application closed, in the words of pg, postgres.js and PGlite. */
function isEnded(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { code } = error as { code?: unknown };
  return (
    code === "CONNECTION_ENDED" ||
    /after calling end on the pool|Client was closed and is not queryable|PGlite is closed/.test(error.message)
  );
}

/** Unlike a connection that may only read, which somebody has set so, a standby becomes writable, or the address moves on. */
export function standby(cause: unknown): TwiceproofError {
  return unavailable(
    "The server is a standby, which can only be read.",
    cause,
    "During a failover this passes. Otherwise give the store a connection to the primary.",
  );
}

export function schemaMissing(cause?: unknown): TwiceproofError {
  return new TwiceproofError(
    "STORE_SCHEMA_MISSING",
    "The database lacks the store's tables, or has them of an older version.",
    {
      ...(cause !== undefined && { cause }),
      help: "Run `await store.migrate()` once, or the SQL of printMigrations().",
    },
  );
}

function readOnly(message: string, cause: unknown): TwiceproofError {
  return new TwiceproofError("STORE_READ_ONLY", message, { cause });
}

export function unavailable(message: string, cause?: unknown, help?: string): TwiceproofError {
  return new TwiceproofError("STORE_UNAVAILABLE", message, { cause, ...(help !== undefined && { help }) });
}

export function closed(): TwiceproofError {
  return new TwiceproofError("STORE_CLOSED", "The store was closed.");
}

export function unusable(): TwiceproofError {
  const message = "Give postgresStore a Pool or Client of pg, or anything with query(text, parameters).";
  return new TwiceproofError("INVALID_ARGUMENT", message);
}
