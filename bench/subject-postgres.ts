import { postgresStore } from "@twiceproof/store-postgres";
import { startServer } from "@twiceproof/test-servers";
import { Pool } from "pg";
import { openPostgres } from "./open.ts";
import { findPgbench } from "./pgbench.ts";
import { coreSide, fact, result, type Side } from "./side.ts";
import { type Counted, countedReplays, type Subject } from "./subject.ts";

export async function postgresSubject(): Promise<Subject> {
  const { url, pool, versions, close } = await openPostgres();
  const store = postgresStore(pool);
  try {
    await store.migrate();
    await pool.query(plainTable);
  } catch (error) {
    await close();
    throw error;
  }
  return {
    name: "postgres",
    versions,
    core: coreSide(store),
    byHand: byHand(pool),
    pgbench: findPgbench(url),
    countReplays,
    close,
  };
}

const plainTable = `
  create table plain (
    id bytea primary key, attempt_id bytea not null, namespace text not null, key text not null, name text not null,
    fingerprint text not null, holder text not null, state text not null, lease_until timestamptz not null,
    created_at timestamptz not null, settled_at timestamptz, result text
  ) with (fillfactor = 50);
  create index on plain (namespace, created_at)`;

function byHand(pool: Pool): Side {
  const insert = `
    insert into plain (id, attempt_id, namespace, key, name, fingerprint, holder, state, lease_until, created_at)
    values ($1, $2, $3, $4, $5, $6, $7, 'claimed', now() + $8::bigint * interval '1 millisecond', now())`;
  const update = "update plain set state = 'completed', settled_at = now(), result = $2 where id = $1";
  return {
    async claim(key) {
      const { namespace, name, fingerprint, holder, leaseMs, ...ids } = fact(key);
      const id = Buffer.from(ids.id, "hex");
      const attemptId = Buffer.from(ids.attemptId, "hex");
      const values = [id, attemptId, namespace, key, name, fingerprint, holder, leaseMs];
      await pool.query({ name: "plain_insert", text: insert, values });
      return async () => void (await pool.query({ name: "plain_update", text: update, values: [id, result] }));
    },
  };
}

/** On a server of its own: the counters cost a little. */
async function countReplays(): Promise<Counted> {
  const server = await startServer("postgres", { settings: { shared_preload_libraries: "pg_stat_statements" } });
  const pool = new Pool({ connectionString: server.url, max: 1 });
  const look = async (): Promise<readonly [number, number]> => {
    await pool.query("select pg_stat_force_next_flush()");
    const { rows } = await pool.query(`
      select (select coalesce(sum(n_tup_ins + n_tup_upd + n_tup_del), 0) from pg_stat_user_tables) as tuples, *
      from (select coalesce(sum(calls), 0) as calls, coalesce(sum(wal_records), 0) as wal
        from pg_stat_statements where query not like '%pg_stat%')`);
    return [Number(rows[0].calls), Number(rows[0].tuples) + Number(rows[0].wal)];
  };
  try {
    await pool.query("create extension pg_stat_statements");
    const store = postgresStore(pool);
    await store.migrate();
    return await countedReplays(coreSide(store), async (calls) => {
      const [callsBefore, writtenBefore] = await look();
      const count = await calls();
      const [trips, written] = await look();
      const by = "pg_stat_statements (calls, wal_records), pg_stat_user_tables (n_tup_ins, n_tup_upd, n_tup_del)";
      return { replays: count, roundTrips: trips - callsBefore, written: written - writtenBefore, by };
    });
  } finally {
    await pool.end();
    await server.stop();
  }
}
