import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { startServer } from "@twiceproof/test-servers";
import { describeOn } from "@twiceproof/test-servers/vitest";
import { expect, it, onTestFinished } from "vitest";
import { postgresStore } from "../src/index.ts";
import { bare, effect, quietPool, rejection, scratch, until, win } from "./support/scratch.ts";

describeOn(["postgres", "postgres-distribution"], "what goes wrong is told", (server) => {
  const place = scratch(server);

  it("a connection that may only read", async () => {
    await place.migrated();
    const store = place.store(place.pool({ options: "-c default_transaction_read_only=on" }));
    for (const requests of [[effect("order")], [effect("order"), effect("another")]])
      expect(await rejection(store.claim(requests))).toMatchObject({
        code: "STORE_READ_ONLY",
        cause: { code: "25006" },
      });
    expect(await store.get([effect("order").id])).toEqual([null]);
  });

  it("a server that cannot be reached, or refuses the password", async () => {
    const nobody = place.store(place.pool({ connectionString: "postgres://127.0.0.1:1/nothing" }));
    expect(await rejection(nobody.claim([effect("order")]))).toMatchObject({
      code: "STORE_UNAVAILABLE",
      cause: { code: "ECONNREFUSED" },
    });
    const url = new URL(place.url);
    url.password = "wrong";
    const stranger = place.store(place.pool({ connectionString: url.href }));
    expect(await rejection(stranger.get([effect("order").id]))).toMatchObject({
      code: "STORE_UNAVAILABLE",
      cause: { code: "28P01" },
    });
  });

  it("a pool or a client that was ended, and a store that was closed", async () => {
    const pool = place.pool();
    const store = await place.migrated(pool);
    const closing = place.store(pool);
    await closing.close();
    expect(await rejection(closing.claim([effect("order")]))).toMatchObject({ code: "STORE_CLOSED" });
    expect((await win(store, effect("order"))).token).toBe(1);
    await pool.end();
    expect(await rejection(store.claim([effect("order")]))).toMatchObject({ code: "STORE_CLOSED" });
    const client = await place.client();
    await client.end();
    expect(await rejection(place.store(client).claim([effect("order")]))).toMatchObject({ code: "STORE_CLOSED" });
  });

  it("a statement that took longer than the connection allows", async () => {
    const first = await place.client();
    await place.migrated();
    await first.query("begin");
    await win(place.store(bare(first)), effect("order"));
    const store = place.store(place.pool({ options: "-c statement_timeout=50" }));
    expect(await rejection(store.claim([effect("order")]))).toMatchObject({
      code: "STORE_UNAVAILABLE",
      cause: { code: "57014" },
    });
    await first.query("rollback");
  });

  it("a connection that was ended while it waited; the same attempt may ask again", async () => {
    const first = await place.client();
    const pool = place.pool({ max: 1 });
    const store = await place.migrated(pool);
    await first.query("begin");
    await win(place.store(bare(first)), effect("order"));
    const request = effect("order");
    const claimed = rejection(store.claim([request]));
    const blocked = "select pid from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()";
    await until(async () => (await place.query(blocked)).length === 1);
    await place.query(`select pg_terminate_backend(pid) from (${blocked}) waiting`);
    expect(await claimed).toMatchObject({ code: "STORE_UNAVAILABLE" });
    await first.query("rollback");
    expect((await win(store, request)).token).toBe(1);
  });

  it("no key, result or address is in a message", async () => {
    const store = await place.migrated();
    await place.query("alter table $s.claims add constraint small check (length(result) < 10)");
    const ref = await win(store, effect("secret-key"));
    const error = (await rejection(
      store.settle([{ ...ref, state: "completed", payload: { format: "json", text: "secret-result" } }]),
    )) as Error;
    expect(error).toMatchObject({ code: "STORE_UNAVAILABLE", cause: { code: "23514" } });
    expect(error.message).not.toMatch(/secret|127\.0/);
    expect((await store.get([ref.id]))[0]?.state).toBe("claimed");
  });

  it("what is no client", () => {
    for (const client of [undefined, null, {}, "postgres://localhost"])
      expect(() => postgresStore(client as never)).toThrow(expect.objectContaining({ code: "INVALID_ARGUMENT" }));
  });
});

describeOn(["postgres", "postgres-distribution"], "a transaction of the application", (server) => {
  const place = scratch(server);

  it("is waited for on its client, and nothing is recorded in it", async () => {
    const client = await place.client();
    const store = await place.migrated(client);
    await client.query("begin");
    let claimed = false;
    const claim = win(store, effect("order")).then((ref) => {
      claimed = true;
      return ref;
    });
    await client.query("select pg_sleep(0.05)");
    expect(claimed).toBe(false);
    expect(await place.query("select key from $s.claims")).toEqual([]);
    await client.query("rollback");
    expect((await claim).token).toBe(1);
    expect(await place.query("select key from $s.claims")).toEqual([{ key: "order" }]);
  });

  it("that begins while a claim is on its way to the same client does not have it", async () => {
    const client = await place.client();
    const store = await place.migrated(client);
    await store.get([effect("order").id]);
    const begun = client.query("begin");
    const claim = win(store, effect("order"));
    await begun;
    await client.query("select 1");
    await client.query("rollback");
    expect((await claim).token).toBe(1);
    expect(await place.query("select key, token::int from $s.claims")).toEqual([{ key: "order", token: 1 }]);
  });

  it("takes a claim with it when it is rolled back, if the client does not tell of it", async () => {
    const client = await place.client();
    const store = await place.migrated(bare(client));
    await client.query("begin");
    await win(store, effect("order"));
    await client.query("rollback");
    expect(await store.get([effect("order").id])).toEqual([null]);
    expect((await win(store, effect("order"))).token).toBe(1);
  });
});

describeOn(["postgres"], "a transaction of the application", (server) => {
  const place = scratch(server);

  it("that failed is told when it does not end", { timeout: 30_000 }, async () => {
    const client = await place.client();
    const store = await place.migrated(bare(client));
    await client.query("begin");
    await rejection(client.query("select 1 / 0"));
    expect(await rejection(store.claim([effect("order")]))).toMatchObject({
      code: "STORE_UNAVAILABLE",
      message: expect.stringContaining("transaction"),
      help: expect.stringContaining("a Pool"),
    });
    await client.query("rollback");
    expect((await win(store, effect("order"))).token).toBe(1);
  });
});

it("survives a server that is killed and started again", { timeout: 120_000 }, async () => {
  const server = await startServer("postgres");
  onTestFinished(() => server.stop());
  const pool = quietPool({ connectionString: server.url });
  onTestFinished(() => pool.end());
  const store = postgresStore(pool);
  await store.migrate();
  const ref = await win(store, effect("order"));
  await server.kill();
  expect(await rejection(store.claim([effect("order")]))).toMatchObject({ code: "STORE_UNAVAILABLE" });
  await server.restart();
  expect(await store.settle([{ ...ref, state: "completed", payload: null }])).toEqual(["settled"]);

  // The same data as a standby: read only, and that passes.
  const [row] = (await pool.query("select current_setting('data_directory') as folder")).rows as { folder: string }[];
  writeFileSync(join(row?.folder ?? "", "standby.signal"), "");
  await server.restart();
  await until(
    async () =>
      ((await rejection(store.claim([effect("another")]))) as { cause?: { code?: string } }).cause?.code === "25006",
  );
  expect(await rejection(store.claim([effect("another")]))).toMatchObject({
    code: "STORE_UNAVAILABLE",
    message: expect.stringContaining("standby"),
  });
  expect(await store.get([ref.id])).toMatchObject([{ state: "completed" }]);
  expect((await store.health()).warnings).toEqual([expect.stringContaining("standby")]);
});
