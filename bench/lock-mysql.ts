import { mysqlStore } from "@twiceproof/store-mysql";
import { createPool, type Pool, type ResultSetHeader } from "mysql2/promise";
import { holder, type Lock, type LockSubject, leaseMs, type RawLock, rawLock, worker } from "./lock.ts";
import { openMysql } from "./open.ts";

export async function mysqlLocks(name: "mariadb" | "mysql"): Promise<LockSubject> {
  const { uri, pool, versions, close } = await openMysql(name);
  // With the flag, a row that was found and left as it was counts as one that was written.
  const changing = createPool({ uri, flags: ["-FOUND_ROWS"] });
  // A named lock has its connection to itself for as long as it is held.
  const held = createPool({ uri, connectionLimit: 64, maxIdle: 64 });
  const closeAll = async (): Promise<void> => {
    await Promise.all([held.end(), changing.end()]);
    await close();
  };
  const store = mysqlStore(pool);
  try {
    await store.migrate();
    await pool.query(rawTable);
  } catch (error) {
    await closeAll();
    throw error;
  }
  const locks = { twiceproof: () => worker(store), raw: () => rawLock(raw(changing)), advisory: () => advisory(held) };
  return { name, versions, locks, close: closeAll };
}

const rawTable = `
  create table raw_locks (
    thread varchar(512) not null primary key, attempt_id binary(16) not null, holder varchar(512) not null,
    state varchar(9) not null, token bigint not null, lease_until datetime(3) not null, claimed_at datetime(3) not null,
    settled_at datetime(3)
  ) engine = innodb, default character set utf8mb4, collate utf8mb4_bin, row_format = dynamic`;

function raw(pool: Pool): RawLock {
  const now = "utc_timestamp(3)";
  // In this order: each assignment sees those before it.
  const kept = ["attempt_id", "holder", "claimed_at", "lease_until"].map(
    (column) => `${column} = if(state = 'released' or lease_until < ${now}, values(${column}), ${column})`,
  );
  const take = `
    insert into raw_locks (thread, attempt_id, holder, state, token, lease_until, claimed_at)
    values (?, ?, ?, 'claimed', 1, ${now} + interval ? microsecond, ${now})
    on duplicate key update token = token + (state = 'released' or lease_until < ${now}), ${kept.join(", ")}, state = 'claimed'`;
  const release = `
    update raw_locks set state = 'released', settled_at = ${now}
    where thread = ? and attempt_id = ? and state = 'claimed'`;
  const write = async (text: string, values: (string | number | Buffer)[]): Promise<ResultSetHeader> =>
    (await pool.execute<ResultSetHeader>(text, values))[0];
  const bytes = (attemptId: string): Buffer => Buffer.from(attemptId, "hex");
  return {
    take: async (thread, attemptId) =>
      (await write(take, [thread, bytes(attemptId), holder, leaseMs * 1000])).affectedRows > 0,
    release: (thread, attemptId) => write(release, [thread, bytes(attemptId)]),
  };
}

function advisory(pool: Pool): Lock {
  return {
    async run(thread, body) {
      const connection = await pool.getConnection();
      try {
        await connection.execute("select get_lock(?, 60)", [thread]);
        await body();
        await connection.execute("select release_lock(?)", [thread]);
      } finally {
        connection.release();
      }
    },
  };
}
