import { sqliteStore } from "@twiceproof/store-sqlite";
import type Database from "better-sqlite3";
import { holder, type LockSubject, leaseMs, type RawLock, rawLock, worker } from "./lock.ts";
import { openSqlite } from "./open.ts";

export async function sqliteLocks(): Promise<LockSubject> {
  const { db, versions, close } = openSqlite();
  const store = sqliteStore(db);
  await store.migrate();
  const written = raw(db);
  return {
    name: "sqlite",
    versions,
    locks: { twiceproof: () => worker(store), raw: () => rawLock(written) },
    close,
  };
}

const now = "cast(unixepoch('subsec') * 1000 as integer)";

/** One transaction a call, each in a turn of the event loop, as calls from requests are. */
function raw(db: Database.Database): RawLock {
  db.exec(`
    create table raw_locks (
      thread text not null primary key, attempt_id blob not null, holder text not null, state text not null,
      token integer not null, lease_until integer not null, claimed_at integer not null, settled_at integer
    ) strict, without rowid`);
  const take = db.prepare(`
    insert into raw_locks as c (thread, attempt_id, holder, state, token, lease_until, claimed_at)
    values (:thread, unhex(:attemptId), :holder, 'claimed', 1, ${now} + :leaseMs, ${now})
    on conflict (thread) do update set attempt_id = excluded.attempt_id, holder = excluded.holder, state = 'claimed',
      token = c.token + 1, lease_until = excluded.lease_until, claimed_at = excluded.claimed_at, settled_at = null
    where c.state = 'released' or c.lease_until < ${now}`);
  const release = db.prepare(`
    update raw_locks set state = 'released', settled_at = ${now}
    where thread = :thread and attempt_id = unhex(:attemptId) and state = 'claimed'`);

  const inTurn = <T>(write: () => T): Promise<T> =>
    new Promise<void>((resolve) => void setImmediate(resolve)).then(() => write());

  return {
    take: (thread, attemptId) => inTurn(() => take.run({ thread, attemptId, holder, leaseMs }).changes > 0),
    release: (thread, attemptId) => inTurn(() => release.run({ thread, attemptId })),
  };
}
