import { mysqlStore } from "@twiceproof/store-mysql";
import { createPool, type Pool, type RowDataPacket } from "mysql2/promise";
import { openMysql } from "./open.ts";
import { coreSide, fact, result, type Side } from "./side.ts";
import { type Counted, countedReplays, type Subject } from "./subject.ts";

export async function mysqlSubject(name: "mariadb" | "mysql"): Promise<Subject> {
  const { uri, pool, versions, close } = await openMysql(name);
  const store = mysqlStore(pool);
  try {
    await store.migrate();
    await pool.query(plainTable);
  } catch (error) {
    await close();
    throw error;
  }
  return {
    name,
    versions,
    core: coreSide(store),
    byHand: byHand(pool),
    countReplays: () => countReplays(name, uri),
    close,
  };
}

const plainTable = `
  create table plain (
    id binary(32) not null primary key, attempt_id binary(16) not null, namespace varchar(128) not null,
    \`key\` varchar(512) not null, name varchar(128) not null, fingerprint varchar(255) not null,
    holder varchar(512) not null, state varchar(9) not null, lease_until datetime(3) not null,
    created_at datetime(3) not null, settled_at datetime(3), result longtext, key (namespace, created_at)
  ) engine = innodb, default character set utf8mb4, collate utf8mb4_bin, row_format = dynamic`;

function byHand(pool: Pool): Side {
  const now = "utc_timestamp(3)";
  const insert = `
    insert into plain (id, attempt_id, namespace, \`key\`, name, fingerprint, holder, state, lease_until, created_at)
    values (?, ?, ?, ?, ?, ?, ?, 'claimed', ${now} + interval ? microsecond, ${now})`;
  const update = `update plain set state = 'completed', settled_at = ${now}, result = ? where id = ?`;
  return {
    async claim(key) {
      const { namespace, name, fingerprint, holder, leaseMs, ...ids } = fact(key);
      const id = Buffer.from(ids.id, "hex");
      const attemptId = Buffer.from(ids.attemptId, "hex");
      await pool.execute(insert, [id, attemptId, namespace, key, name, fingerprint, holder, leaseMs * 1000]);
      return async () => void (await pool.execute(update, [result, id]));
    },
  };
}

/**
 * Rows that were written: MariaDB counts them for each session, apart from those of temporary tables; MySQL does not keep
 * these apart, but counts InnoDB's for the whole server, which nobody else uses.
 */
const written = {
  mariadb: ["Handler_write", "Handler_update", "Handler_delete"],
  mysql: ["Innodb_rows_inserted", "Innodb_rows_updated", "Innodb_rows_deleted"],
} as const;

/** On one connection, whose session counts its statements. */
async function countReplays(name: "mariadb" | "mysql", uri: string): Promise<Counted> {
  const pool = createPool({ uri, connectionLimit: 1 });
  const names = ["Questions", ...written[name]];
  const look = async (): Promise<readonly [number, number]> => {
    const [rows] = await pool.query<RowDataPacket[]>("show session status where variable_name in (?)", [names]);
    const values = new Map(rows.map((row) => [String(row.Variable_name), Number(row.Value)]));
    const [questions = Number.NaN, ...rest] = names.map((each) => values.get(each) ?? Number.NaN);
    return [questions, rest.reduce((sum, each) => sum + each)];
  };
  try {
    return await countedReplays(coreSide(mysqlStore(pool)), async (calls) => {
      const [questionsBefore, writtenBefore] = await look();
      const count = await calls();
      const [questions, written] = await look();
      // The second look is a question too.
      const roundTrips = questions - questionsBefore - 1;
      return { replays: count, roundTrips, written: written - writtenBefore, by: names.join(", ") };
    });
  } finally {
    await pool.end();
  }
}
