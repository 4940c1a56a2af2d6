import { PGlite } from "@electric-sql/pglite";
import { type StoreHarness, storeLaws } from "@twiceproof/core/testing";
import { createDatabase, startPgBouncer } from "@twiceproof/test-servers";
import { describeOn } from "@twiceproof/test-servers/vitest";
import { Client, type PoolConfig } from "pg";
import postgres from "postgres";
import { afterAll, beforeAll, describe, it } from "vitest";
import { type PostgresClient, postgresStore } from "../src/index.ts";
import { fromPostgresJs } from "./support/postgres-js.ts";
import { quietPool } from "./support/scratch.ts";

const schema = "laws";
const expire = `with tickets as (update ${schema}.line set lease_until = 'epoch')
  update ${schema}.claims set lease_until = 'epoch' where state = 'claimed'`;

interface Source {
  readonly client: PostgresClient;
  end(): Promise<void>;
}

type Connect = (url: string) => Source | Promise<Source>;

function pool(config: PoolConfig = {}): Connect {
  return (connectionString) => {
    const client = quietPool({ connectionString, ...config });
    return { client, end: () => client.end() };
  };
}

async function client(url: string): Promise<Source> {
  const client = new Client(url);
  client.on("error", () => undefined);
  await client.connect();
  return { client, end: () => client.end() };
}

function postgresJs(url: string): Source {
  const sql = postgres(url, { onnotice: () => undefined });
  return { client: fromPostgresJs(sql), end: () => sql.end() };
}

async function pooler(url: string): Promise<Source> {
  const bouncer = await startPgBouncer(url);
  const { client, end } = await pool()(bouncer.url);
  return {
    client,
    async end() {
      await end();
      await bouncer.stop();
    },
  };
}

function laws(title: string, make: () => Promise<StoreHarness>): void {
  describe(`the laws of a store, on ${title}`, () => {
    let harness: StoreHarness;
    beforeAll(async () => {
      harness = await make();
    }, 120_000);
    afterAll(() => harness.close());
    for (const law of storeLaws) it(`${law.number}: ${law.name}`, { timeout: 30_000 }, () => law.check(harness));
  });
}

/** Three sources, given to the stores in turn; `expireLeases` comes from outside of all of them. */
async function harnessOn(serverUrl: string, connect: Connect): Promise<StoreHarness> {
  const database = await createDatabase(serverUrl);
  const outside = quietPool({ connectionString: database.url });
  const sources = await Promise.all([1, 2, 3].map(() => connect(database.url)));
  let stores = 0;
  return {
    async connect() {
      const store = postgresStore((sources[stores++ % sources.length] as Source).client, { schema });
      await store.migrate();
      return store;
    },
    expireLeases: async () => void (await outside.query(expire)),
    async close() {
      for (const source of sources) await source.end();
      await outside.end();
      await database.drop();
    },
  };
}

const isolated = (level: string) => pool({ options: `-c default_transaction_isolation=${level}` });

const everywhere: Readonly<Record<string, Connect>> = {
  "a pool": pool(),
  "a client": client,
  "postgres.js": postgresJs,
};

const newest: Readonly<Record<string, Connect>> = {
  "a pool of one connection": pool({ max: 1 }),
  "a pool behind PgBouncer": pooler,
  "repeatable read": isolated("repeatable\\ read"),
  serializable: isolated("serializable"),
};

describeOn(["postgres", "postgres-distribution"], "", (server) => {
  const variants = server.name === "postgres" ? { ...everywhere, ...newest } : everywhere;
  for (const [title, connect] of Object.entries(variants)) laws(title, () => harnessOn(server.url, connect));
});

/** In this process, and one connection for all. */
laws("PGlite", async () => {
  const db = new PGlite();
  return {
    async connect() {
      const store = postgresStore(db, { schema });
      await store.migrate();
      return store;
    },
    expireLeases: async () => void (await db.query(expire)),
    close: () => db.close(),
  };
});
