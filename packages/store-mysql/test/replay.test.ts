import { describeOn } from "@twiceproof/test-servers/vitest";
import type { Connection } from "mysql2/promise";
import { expect, it } from "vitest";
import { mysqlStore } from "../src/index.ts";
import { complete, connectionOn, effect, poolOn, scratchUrl, win } from "./support/scratch.ts";

const keys = Array.from({ length: 50 }, (_, index) => `order:${index}`);
const writes = ["Handler_write", "Handler_update", "Handler_delete", "Handler_commit"];
const trips = ["Com_insert", "Com_update", "Com_insert_select", "Com_update_multi", "Com_select", "Com_begin"];

/** Of the one session of a pool of one. */
async function counters(session: Pick<Connection, "query">, names: readonly string[]): Promise<Record<string, number>> {
  const [rows] = await session.query(`show session status where variable_name in ('${names.join("', '")}')`);
  return Object.fromEntries(
    (rows as { Variable_name: string; Value: string }[]).map((row) => [row.Variable_name, Number(row.Value)]),
  );
}

describeOn(["mariadb", "mysql"], "a replay", (server) => {
  it("of a finished effect reads once and writes nothing, alone and in a list", async () => {
    const pool = poolOn(await scratchUrl(server.url), { connectionLimit: 1 });
    const store = mysqlStore(pool);
    await store.migrate();
    for (const key of keys) await complete(store, await win(store, effect(key)));
    // The first one that meets a record says that replays are coming.
    await store.claim([effect("order:0")]);
    const records = await store.get(keys.map((key) => effect(key).id));
    const [written, asked] = [await counters(pool, writes), await counters(pool, trips)];
    for (const key of keys) expect(await store.claim([effect(key)])).toMatchObject([{ answer: "taken" }]);
    const answers = await store.claim(keys.map((key) => effect(key)));
    expect(answers.every(({ answer }) => answer === "taken")).toBe(true);
    const [writtenAfter, askedAfter] = [await counters(pool, writes), await counters(pool, trips)];
    for (const name of ["Handler_update", "Handler_delete"])
      expect([name, writtenAfter[name]]).toEqual([name, written[name]]);
    for (const name of trips)
      expect([name, (askedAfter[name] ?? 0) - (asked[name] ?? 0)]).toEqual([
        name,
        name === "Com_select" ? keys.length + 1 : 0,
      ]);
    const [rows] = await pool.query(
      "select cast(sum(version) as signed) as versions, count(*) as found from twiceproof_claims",
    );
    expect(rows).toEqual([{ versions: 2 * keys.length, found: keys.length }]);
    expect(records.map((record) => record?.version)).toEqual(keys.map(() => 2));
  });

  it("costs a new key no look-up: one statement claims it, one settles it", async () => {
    const pool = poolOn(await scratchUrl(server.url), { connectionLimit: 1 });
    const store = mysqlStore(pool);
    await store.migrate();
    await win(store, effect("warm"));
    const before = await counters(pool, trips);
    await complete(store, await win(store, effect("order:1")));
    const after = await counters(pool, trips);
    const spent = Object.fromEntries(trips.map((name) => [name, (after[name] ?? 0) - (before[name] ?? 0)]));
    expect(spent).toMatchObject({ Com_insert: 1, Com_select: 0, Com_begin: 0 });
    expect((spent.Com_update ?? 0) + (spent.Com_update_multi ?? 0)).toBe(1);
  });

  it("is readable in plain SQL", async () => {
    const url = await scratchUrl(server.url);
    const store = mysqlStore(poolOn(url));
    await store.migrate();
    const ref = await win(store, effect("order:1", { scope: "thread-7", runId: "run-9" }));
    await complete(store, ref, '{"charge":"ch_1"}');
    const [rows] = await (await connectionOn(url)).query(
      "select kind, `key`, scope, run_id, state, json_unquote(json_extract(result, '$.charge')) as charge from twiceproof_claims",
    );
    expect(rows).toEqual([
      { kind: "effect", key: "order:1", scope: "thread-7", run_id: "run-9", state: "completed", charge: "ch_1" },
    ]);
  });
});
