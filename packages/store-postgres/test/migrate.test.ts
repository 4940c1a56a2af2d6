import { describeOn } from "@twiceproof/test-servers/vitest";
import { expect, it, onTestFinished } from "vitest";
import { postgresStore, printMigrations } from "../src/index.ts";
import { statements } from "../src/sql.ts";
import { effect, rejection, scratch, until, win } from "./support/scratch.ts";

const tables = "select table_name from information_schema.tables where table_schema = '$s' order by table_name";
const layout = `select table_name, column_name, data_type, is_nullable, column_default from information_schema.columns
  where table_schema = '$s' order by table_name, ordinal_position`;
const indexes = "select indexdef from pg_indexes where schemaname = '$s' order by indexdef";

describeOn(["postgres", "postgres-distribution"], "migrating", (server) => {
  const place = scratch(server);

  it("creates the schema, once", async () => {
    const store = await place.migrated();
    const created = await place.query(tables);
    expect(created.map((row) => row.table_name)).toEqual(["claims", "history", "line", "migrations"]);
    await store.migrate();
    await place.store().migrate();
    expect(await place.query(tables)).toEqual(created);
    expect(await place.query("select version from $s.migrations")).toEqual([{ version: 1 }]);
  });

  it("has one index beside the key, of columns that stay as they are: updates stay on their page", async () => {
    const pool = place.pool({ max: 1 });
    const store = await place.migrated(pool);
    const rows = await place.query("select indexdef from pg_indexes where schemaname = '$s' and tablename = 'claims'");
    expect(rows.map(({ indexdef }) => /\(.*\)/.exec(String(indexdef))?.[0]).sort()).toEqual([
      "(id)",
      "(namespace, created_at)",
    ]);
    for (let index = 0; index < 20; index++) {
      const ref = await win(store, effect(`order:${index}`));
      await store.renew([{ ...ref, leaseMs: 120_000 }]);
      await store.settle([{ ...ref, state: "completed", payload: { format: "json", text: "{}" } }]);
    }
    // A connection that ends tells its counts.
    await pool.end();
    const counts =
      "select n_tup_upd::int as all, n_tup_hot_upd::int as hot from pg_stat_user_tables where relid = '$s.claims'::regclass";
    await until(async () => (await place.query(counts))[0]?.all === 40);
    expect(await place.query(counts)).toEqual([{ all: 40, hot: 40 }]);
  });

  it("leaves a table of which no prepared statement reads all, although it was planned when there was nothing in it", async () => {
    await place.migrated();
    await place.query("vacuum analyze $s.claims");
    const client = await place.client();
    await client.query("set plan_cache_mode = force_generic_plan");
    const prepared = Object.entries(statements(`"${place.schema}"`)).filter(([, { name }]) => name !== undefined);
    expect(prepared.map(([key]) => key)).toEqual(
      expect.arrayContaining(["claimNew", "claimMany", "settle", "settleMany"]),
    );
    for (const [key, { name, text }] of prepared) {
      await client.query(`prepare ${name} as ${text}`);
      const parameters = Array.from(new Set(text.match(/\$\d+/g)), () => "null").join();
      const { rows } = await client.query(`explain execute ${name}(${parameters})`);
      const plan = rows.map((row) => row["QUERY PLAN"]).join("\n");
      expect(plan, key).toMatch(/claims/);
      expect(plan, key).not.toMatch(/Seq Scan on claims|claims_created/);
    }
  });

  it("is done once by many who start together", async () => {
    const stores = Array.from({ length: 8 }, () => place.store(place.pool({ max: 2 })));
    await Promise.all(stores.flatMap((store) => [store.migrate(), store.migrate()]));
    expect(await place.query("select version from $s.migrations")).toEqual([{ version: 1 }]);
    await Promise.all(stores.map((store, index) => win(store, effect(`order:${index}`))));
  });

  it("goes on where another was stopped", async () => {
    for (const statement of printMigrations({ schema: place.schema }).split(";\n").slice(0, 3))
      await place.query(statement);
    const store = place.store();
    expect(await rejection(store.claim([effect("order")]))).toMatchObject({ code: "STORE_SCHEMA_MISSING" });
    await store.migrate();
    expect((await win(store, effect("order"))).token).toBe(1);
  });

  it("is printed for those whose tools run migrations, to the same end", async () => {
    await place.migrated();
    const [made, indexed] = [await place.query(layout), await place.query(indexes)];
    await place.query("drop schema $s cascade");
    await place.query(printMigrations({ schema: place.schema }));
    expect(await place.query(layout)).toEqual(made);
    expect(await place.query(indexes)).toEqual(indexed);
    expect((await win(place.store(), effect("order"))).token).toBe(1);
    expect(printMigrations()).toContain('create schema if not exists "twiceproof"');
  });

  it("asks for no more rights than it needs", async () => {
    const role = `${place.schema}_role_${server.name.replaceAll("-", "_")}`;
    await place.query(`create role ${role} login password 'secret'`);
    const url = new URL(place.url);
    url.username = role;
    url.password = "secret";
    onTestFinished(async () => {
      await place.query(`drop schema if exists $s cascade`);
      await place.query(`drop role ${role}`);
    });
    const store = place.store(place.pool({ connectionString: url.href }));
    expect(await rejection(store.migrate())).toMatchObject({ code: "STORE_READ_ONLY", cause: { code: "42501" } });
    // Somebody else owns the database, and made the schema for the role.
    await place.query(`create schema $s authorization ${role}`);
    await store.migrate();
    expect((await win(store, effect("order"))).token).toBe(1);
  });

  it("lets a worker without the right to create anything work, and look whether there is something to migrate", async () => {
    await place.migrated();
    const options = "-c default_transaction_read_only=on";
    const reader = place.store(place.pool({ options }));
    await reader.migrate();
    expect((await reader.health()).warnings).toEqual([]);
  });

  it("tells when it has not been done, and how to do it", async () => {
    const store = place.store();
    for (const ask of [() => store.claim([effect("order")]), () => store.get([effect("order").id]), store.health])
      expect(await rejection(ask())).toMatchObject({
        code: "STORE_SCHEMA_MISSING",
        help: expect.stringContaining("await store.migrate()"),
      });
    await place.store().migrate();
    expect((await win(store, effect("order"))).token).toBe(1);
  });

  it("tells when the tables were taken away, or lack a column", async () => {
    const store = await place.migrated();
    await win(store, effect("order"));
    await place.query("alter table $s.claims rename column run_id to something");
    expect(await rejection(store.claim([effect("another")]))).toMatchObject({ code: "STORE_SCHEMA_MISSING" });
    await place.query("drop schema $s cascade");
    expect(await rejection(store.claim([effect("another")]))).toMatchObject({ code: "STORE_SCHEMA_MISSING" });
  });

  it("tells when the function was left behind by who copied the tables alone, and has it printed", async () => {
    const store = await place.migrated();
    await place.query("drop function $s.claim_record");
    expect(await rejection(store.claim([effect("order")]))).toMatchObject({ code: "STORE_SCHEMA_MISSING" });
    await place.query(printMigrations({ schema: place.schema }));
    expect((await win(store, effect("order"))).token).toBe(1);
  });

  it("refuses a schema that a newer version wrote, before the first statement, and changes nothing", async () => {
    await place.migrated();
    await place.query("insert into $s.migrations (version, at) values (99, now())");
    const store = place.store();
    for (const ask of [() => store.claim([effect("order")]), store.migrate, store.health])
      expect(await rejection(ask())).toMatchObject({
        code: "STORE_SCHEMA_NEWER",
        message: expect.stringContaining("upgrade @twiceproof/store-postgres"),
      });
    expect(await place.query("select count(*)::int as rows from $s.claims")).toEqual([{ rows: 0 }]);
    await place.query("delete from $s.migrations where version = 99");
    expect((await win(store, effect("order"))).token).toBe(1);
  });

  it("keeps two schemas of one database apart", async () => {
    const [one, two] = [place.store(), place.store(undefined, { schema: `${place.schema}_B` })];
    await Promise.all([one.migrate(), two.migrate()]);
    for (const store of [one, two]) expect((await win(store, effect("order"))).token).toBe(1);
  });
});

it("refuses the names that are none of its own, or no names", () => {
  const client = { query: () => Promise.reject(new Error("not to be asked")) };
  const hostile = ["", "a b", 'a"b', "a;drop schema public", "a.b", "ä", "1a", "a-b", "a\n", "x".repeat(64)];
  for (const schema of [...hostile, "pg_temp", "PG_x", "public", "information_schema", null, 7, {}]) {
    const options = { schema: schema as string };
    for (const use of [() => postgresStore(client, options), () => printMigrations(options)])
      expect(use).toThrow(expect.objectContaining({ code: "INVALID_ARGUMENT" }));
  }
  for (const schema of ["a", "_", "Twice_2", "x".repeat(63), "select"])
    expect(() => postgresStore(client, { schema })).not.toThrow();
});
