import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startServer } from "@twiceproof/test-servers";
import Database from "better-sqlite3";
import { createPool, type Pool as MysqlPool } from "mysql2/promise";
import { Pool as PostgresPool } from "pg";
import { versionOf } from "./version.ts";

/** A database of its own, as an application would have it, with room for what is measured. */
interface Opened {
  /** Of the server or the library, and of the driver. */
  readonly versions: Readonly<Record<string, string>>;
  close(): Promise<void>;
}

export async function openPostgres(): Promise<Opened & { readonly url: string; readonly pool: PostgresPool }> {
  const { url, version, stop } = await startServer("postgres", {
    settings: { shared_buffers: "256MB", min_wal_size: "1GB", max_wal_size: "4GB" },
  });
  const pool = new PostgresPool({ connectionString: url });
  await fillWal(pool);
  return {
    url,
    pool,
    versions: { postgres: version, pg: versionOf("pg") },
    async close() {
      await pool.end();
      await stop();
    },
  };
}

/**
 * A server that has run for a day takes its used WAL files again. A new one writes each of 16 MB full of zeros first, for
 * which all commits wait: 20 ms in each second, for whichever side is at it.
 */
async function fillWal(pool: PostgresPool): Promise<void> {
  for (let files = 0; files < 64; files++) {
    await pool.query("select pg_logical_emit_message(false, 'bench', '')");
    await pool.query("select pg_switch_wal()");
  }
  await pool.query("checkpoint");
}

export async function openMysql(
  name: "mariadb" | "mysql",
): Promise<Opened & { readonly uri: string; readonly pool: MysqlPool }> {
  const server = await startServer(name, { settings: { "innodb-buffer-pool-size": "256M" } });
  const outside = createPool({ uri: server.url, connectionLimit: 1 });
  await outside.query("create database bench");
  await outside.end();
  const uri = new URL("/bench", server.url).href;
  const pool = createPool({ uri });
  return {
    uri,
    pool,
    versions: { [name]: server.version, mysql2: versionOf("mysql2") },
    async close() {
      await pool.end();
      await server.stop();
    },
  };
}

export function openSqlite(): Opened & { readonly file: string; readonly db: Database.Database } {
  const directory = mkdtempSync(join(tmpdir(), "twiceproof-bench-"));
  const file = join(directory, "bench.db");
  const db = new Database(file, { timeout: 50 });
  db.pragma("journal_mode = wal");
  db.pragma("synchronous = full");
  const driver = "better-sqlite3";
  return {
    file,
    db,
    versions: { sqlite: String(db.prepare("select sqlite_version()").pluck().get()), [driver]: versionOf(driver) },
    async close() {
      db.close();
      rmSync(directory, { recursive: true });
    },
  };
}
