import { sqliteStore } from "@twiceproof/store-sqlite";
import Database from "better-sqlite3";
import { openSqlite } from "./open.ts";
import { coreSide, fact, result, type Side } from "./side.ts";
import { countedReplays, type Subject } from "./subject.ts";

export async function sqliteSubject(): Promise<Subject> {
  const { file, db, versions, close } = openSqlite();
  const outside = new Database(file);
  const core = coreSide(sqliteStore(db));
  await (await core.claim("the first, which migrates"))();

  return {
    name: "sqlite",
    versions,
    core,
    byHand: byHand(db),
    countReplays: () =>
      countedReplays(core, async (calls) => {
        const look = (): readonly number[] => [
          Number(db.prepare("select total_changes()").pluck().get()),
          Number(outside.pragma("data_version", { simple: true })),
        ];
        const [changesBefore = 0, versionBefore] = look();
        const count = await calls();
        const [changes = 0, version] = look();
        const written = changes - changesBefore + Number(version !== versionBefore);
        return { replays: count, roundTrips: null, written, by: "total_changes, data_version" };
      }),
    async close() {
      outside.close();
      await close();
    },
  };
}

const now = "cast(unixepoch('subsec') * 1000 as integer)";

/** One transaction a call, each in a turn of the event loop, as calls from requests are. */
function byHand(db: Database.Database): Side {
  db.exec(`
    create table plain (
      id blob not null primary key, attempt_id blob not null, namespace text not null, key text not null,
      name text not null, fingerprint text not null, holder text not null, state text not null,
      lease_until integer not null, created_at integer not null, settled_at integer, result text
    ) strict, without rowid;
    create index plain_created on plain (namespace, created_at)`);
  const insert = db.prepare(`
    insert into plain (id, attempt_id, namespace, key, name, fingerprint, holder, state, lease_until, created_at)
    values (unhex(:id), unhex(:attemptId), :namespace, :key, :name, :fingerprint, :holder, 'claimed',
      ${now} + :leaseMs, ${now})`);
  const update = db.prepare(`
    update plain set state = 'completed', settled_at = ${now}, result = :result where id = unhex(:id)`);

  const inTurn = (write: () => unknown): Promise<void> =>
    new Promise<void>((resolve) => void setImmediate(resolve)).then(() => void write());

  return {
    async claim(key) {
      const { id, ...rest } = fact(key);
      await inTurn(() => insert.run({ id, ...rest }));
      return () => inTurn(() => update.run({ id, result }));
    },
  };
}
