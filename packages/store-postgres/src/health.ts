import type { Health } from "@twiceproof/core/store";
import type { Row } from "./client.ts";

/** Of the versions that this store is tested on. */
const oldest = 15;

export function toHealth(row: Row): Health {
  return { now: Number(row.now), warnings: [...warnings(row)] };
}

function* warnings(row: Row): Iterable<string> {
  if (row.standby === true)
    yield "The server is a standby: nothing can be claimed on it, and what it shows may be old. Connect to the primary.";
  if (row.commit === "off")
    yield "synchronous_commit is off: a crash of the server may forget claims. Leave it on for these connections.";
  if (row.fsync === "off")
    yield "fsync is off: a crash of the machine may destroy the database, and the claims with it.";
  if (row.isolation !== "read committed")
    yield `The isolation level is ${row.isolation}: it is safe, and slow, as claims that meet are done again. Leave it at read committed.`;
  if (row.encoding !== "UTF8")
    yield `The database's encoding is ${row.encoding}: keys and results with other characters are refused. Use UTF8.`;
  if (Number(row.version) < oldest * 10_000)
    yield `The server is older than PostgreSQL ${oldest}, the oldest that this store is tested on.`;
}
