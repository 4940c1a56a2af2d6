import { postgresStore } from "@twiceproof/store-postgres";
import { Client, Pool } from "pg";
import { holder, type Lock, type LockSubject, leaseMs, type RawLock, rawLock, worker } from "./lock.ts";
import { openPostgres } from "./open.ts";

export async function postgresLocks(): Promise<LockSubject> {
  const { url, pool, versions, close } = await openPostgres();
  // An advisory lock has its connection to itself for as long as it is held.
  const held = new Pool({ connectionString: url, max: 64 });
  const listen = new Client(url);
  const closeAll = async (): Promise<void> => {
    await Promise.all([held.end(), listen.end()]);
    await close();
  };
  const polling = postgresStore(pool);
  const heard = postgresStore(pool, { listen });
  try {
    await listen.connect();
    await polling.migrate();
    await pool.query(rawTable);
  } catch (error) {
    await closeAll();
    throw error;
  }
  return {
    name: "postgres",
    versions,
    locks: {
      twiceproof: () => worker(polling),
      "twiceproof, LISTEN": () => worker(heard),
      raw: () => rawLock(raw(pool)),
      advisory: () => advisory(held),
    },
    close: closeAll,
  };
}

const rawTable = `
  create table raw_locks (
    thread text primary key, attempt_id bytea not null, holder text not null, state text not null,
    token bigint not null, lease_until timestamptz not null, claimed_at timestamptz not null, settled_at timestamptz
  ) with (fillfactor = 50)`;

function raw(pool: Pool): RawLock {
  const take = `
    insert into raw_locks as c (thread, attempt_id, holder, state, token, lease_until, claimed_at)
    values ($1, $2, $3, 'claimed', 1, now() + $4::bigint * interval '1 millisecond', now())
    on conflict (thread) do update set attempt_id = excluded.attempt_id, holder = excluded.holder, state = 'claimed',
      token = c.token + 1, lease_until = excluded.lease_until, claimed_at = excluded.claimed_at, settled_at = null
    where c.state = 'released' or c.lease_until < now()
    returning token`;
  const release = `
    update raw_locks set state = 'released', settled_at = now()
    where thread = $1 and attempt_id = $2 and state = 'claimed'`;
  const bytes = (attemptId: string): Buffer => Buffer.from(attemptId, "hex");
  return {
    async take(thread, attemptId) {
      const values = [thread, bytes(attemptId), holder, leaseMs];
      return (await pool.query({ name: "raw_take", text: take, values })).rows.length > 0;
    },
    release: (thread, attemptId) =>
      pool.query({ name: "raw_release", text: release, values: [thread, bytes(attemptId)] }),
  };
}

function advisory(pool: Pool): Lock {
  const ask = (what: string): string => `select ${what}(hashtextextended($1, 0)) as had`;
  return {
    async run(thread, body) {
      const client = await pool.connect();
      const say = async (name: string, text: string): Promise<unknown> =>
        (await client.query({ name, text, values: [thread] })).rows[0]?.had;
      try {
        if ((await say("adv_try", ask("pg_try_advisory_lock"))) !== true)
          await say("adv_wait", ask("pg_advisory_lock"));
        await body();
        await say("adv_unlock", ask("pg_advisory_unlock"));
      } finally {
        client.release();
      }
    },
  };
}
