import { existsSync } from "node:fs";
import type { Health } from "@twiceproof/core/store";
import type { Database } from "./database.ts";
import * as sql from "./sql.ts";

/** A waiting statement blocks the event loop, and with it the heartbeats, for as long as the handle's busy timeout. */
const longestBusyTimeoutMs = 250;

export function health(db: Database): Health {
  return { now: Number(db.all(sql.health)[0]?.now), warnings: [...warnings(db)] };
}

function* warnings(db: Database): Iterable<string> {
  const file = db.all("pragma database_list").find((row) => row.name === "main")?.file;
  if (file === "" || file === null) {
    yield "The database is in memory: nothing is shared with other processes, and nothing survives a restart.";
    return;
  }
  if (!existsSync(String(file)))
    yield "The database file was removed while it was open: what is recorded now is seen by nobody else, and lost with this process.";
  if (pragma(db, "journal_mode") !== "wal")
    yield "journal_mode is not wal: readers and the writer wait for each other. Run `pragma journal_mode = wal` once.";
  if (Number(pragma(db, "synchronous")) < 2)
    yield "synchronous was lowered on this handle: a power failure may forget claims. Leave it at full.";
  if (Number(pragma(db, "busy_timeout")) > longestBusyTimeoutMs)
    yield `busy_timeout of this handle is over ${longestBusyTimeoutMs} ms: a locked database blocks the event loop, and heartbeats with it, for that long. 50 is a good value.`;
}

function pragma(db: Database, name: string): unknown {
  return Object.values(db.all(`pragma ${name}`)[0] ?? {})[0];
}
