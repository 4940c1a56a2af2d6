import { describeOn } from "@twiceproof/test-servers/vitest";
import postgres from "postgres";
import { describe, expect, it, onTestFinished } from "vitest";
import { fromPostgresJs } from "./support/postgres-js.ts";
import { bare, effect, rejection, scratch, win } from "./support/scratch.ts";

const hostile = [
  `'; drop table claims; --`,
  `"double" 'single' \`back\``,
  "back\\slash \\\\ \\u0041 \\x41 \\",
  "{braces},{null},null,NULL",
  "  blanks at both ends  ",
  "tab\tnewline\nreturn\r",
  "$1 $2::text %s ?",
  "naïve 東京 🧾 \u{10ffff} e\u0301",
  "control \u0001 \u001f \u007f \u2028 \ufeff",
  "ü".repeat(256),
];

describeOn(["postgres", "postgres-distribution"], "a client", (server) => {
  const place = scratch(server);

  it("brings every text back to the byte, alone and in a list", async () => {
    const sql = postgres(place.url, { onnotice: () => undefined });
    onTestFinished(() => sql.end());
    for (const client of [place.pool(), place.pool({ max: 1 }), fromPostgresJs(sql)]) {
      const store = await place.migrated(client);
      const requests = hostile.flatMap((text) =>
        ["alone", "in a list"].map((how) =>
          effect(`${text} ${how}`, {
            key: text,
            name: text,
            scope: text,
            turn: text,
            runId: text,
            holder: text,
            namespace: text,
          }),
        ),
      );
      const [single, list] = [requests.filter((_, at) => at % 2 === 0), requests.filter((_, at) => at % 2 === 1)];
      const answers = [...(await store.claim(list))];
      for (const request of single) answers.push(...(await store.claim([request])));
      expect(answers).toEqual(requests.map(() => ({ answer: "won", token: 1 })));
      const settlements = (some: typeof requests) =>
        some.map(({ id, attemptId, key }) => ({
          ...{ id, attemptId, token: 1, state: "completed" as const },
          payload: { format: key, text: key.repeat(3) },
        }));
      await store.settle(settlements(list));
      for (const each of settlements(single)) await store.settle([each]);
      const records = await store.get(requests.map(({ id }) => id));
      for (const [index, record] of records.entries()) {
        const text = requests[index]?.key as string;
        expect(record).toMatchObject({ key: text, name: text, scope: text, turn: text, runId: text, holder: text });
        expect(record?.payload).toEqual({ format: text, text: text.repeat(3) });
      }
      for (const text of hostile)
        expect((await store.list({ namespace: text, scope: text, name: text, limit: 9 })).records).toHaveLength(2);
      await place.query("drop schema $s cascade");
    }
  });

  it("brings results of a megabyte back, alone and in a list", async () => {
    const store = await place.migrated();
    const texts = Array.from({ length: 3 }, (_, index) => `${index}"\\\n€`.repeat(200_000));
    const refs = [];
    for (const index of texts.keys()) refs.push(await win(store, effect(`order:${index}`)));
    const settlements = refs.map((ref, index) => ({
      ...{ ...ref, state: "completed" as const },
      payload: { format: "json", text: texts[index] as string },
    }));
    expect(await store.settle(settlements.slice(1))).toEqual(["settled", "settled"]);
    expect(await store.settle(settlements.slice(0, 1))).toEqual(["settled"]);
    const records = await store.get(refs.map(({ id }) => id));
    expect(records.map((record) => record?.payload?.text === texts[records.indexOf(record)])).toEqual([
      true,
      true,
      true,
    ]);
    expect(await store.settle(settlements)).toEqual(["already", "already", "already"]);
  });

  it("keeps what people look for in columns that plain SQL can read", async () => {
    const store = await place.migrated();
    const ref = await win(store, effect("order:1", { scope: "thread-7", turn: "turn-1", runId: "run-9" }));
    await store.settle([{ ...ref, state: "completed", payload: { format: "json", text: '{"charge":"ch_1"}' } }]);
    const columns = "kind, key, scope, run_id, state, result::json ->> 'charge' as charge, settled_at <= now() as past";
    expect(
      await place.query(`select ${columns} from $s.claims where settled_at > now() - interval '1 minute'`),
    ).toEqual([
      {
        kind: "effect",
        key: "order:1",
        scope: "thread-7",
        run_id: "run-9",
        state: "completed",
        charge: "ch_1",
        past: true,
      },
    ]);
  });

  describe("prepares statements by name", () => {
    const names = "select name from pg_prepared_statements order by name";

    it("if it is pg's, unless it is told not to", async () => {
      for (const [options, expected] of [
        [{}, 2],
        [{ prepare: true }, 2],
        [{ prepare: false }, 0],
      ] as const) {
        const client = await place.client();
        const store = await place.migrated(client, options);
        const ref = await win(store, effect("order"));
        await store.settle([{ ...ref, state: "completed", payload: null }]);
        await store.renew([{ ...ref, leaseMs: 60_000 }]);
        const { rows } = await client.query(names);
        expect(rows).toHaveLength(expected);
        for (const { name } of rows) expect(name).toMatch(/^twiceproof_[0-9a-f]{16}$/);
        await place.query("drop schema $s cascade");
      }
      const client = await place.client();
      await win(await place.migrated(bare(client)), effect("order"));
      expect((await client.query(names)).rows).toEqual([]);
    });

    it("and goes on without when they are lost", async () => {
      const client = await place.client();
      const store = await place.migrated(client);
      await win(store, effect("one"));
      await client.query("deallocate all");
      await win(store, effect("two"));
      await win(store, effect("three"));
      expect((await client.query(names)).rows).toEqual([]);
    });

    it("and goes on without when another has taken the name", async () => {
      const other = await place.client();
      await win(await place.migrated(other), effect("one"));
      const [taken] = (await other.query(names)).rows as { name: string }[];
      const client = await place.client();
      await client.query(`prepare ${taken?.name} as select 1`);
      await win(place.store(client), effect("two"));
      expect((await client.query(names)).rows).toEqual([taken]);
    });

    it("and goes on without when the table changed under them", async () => {
      const client = await place.client();
      const store = await place.migrated(client);
      const ref = await win(store, effect("one"));
      await store.settle([{ ...ref, state: "completed", payload: null }]);
      await place.query("alter table $s.claims add column added integer");
      expect(await store.claim([effect("one")])).toMatchObject([{ answer: "taken", record: { state: "completed" } }]);
      expect((await win(store, effect("two"))).token).toBe(1);
    });
  });

  it("is warned of, when it is set to be unsafe or slow", async () => {
    const store = await place.migrated();
    expect((await store.health()).warnings).toEqual([]);
    const set = async (option: string) =>
      (await place.store(place.pool({ options: `-c ${option}` })).health()).warnings;
    expect(await set("synchronous_commit=off")).toEqual([expect.stringContaining("synchronous_commit is off")]);
    expect(await set("synchronous_commit=local")).toEqual([]);
    expect(await set("default_transaction_isolation=serializable")).toEqual([expect.stringContaining("serializable")]);
  });

  it("is used for nothing before the first call, and not ended by the store", async () => {
    const pool = place.pool();
    const store = place.store(pool);
    expect(pool.totalCount).toBe(0);
    await store.close();
    expect(pool.totalCount).toBe(0);
    expect((await pool.query("select 1 as one")).rows).toEqual([{ one: 1 }]);
    expect(await rejection(store.migrate())).toMatchObject({ code: "STORE_CLOSED" });
  });

  it("prunes more than fits one transaction, and leaves what is locked for the next time", {
    timeout: 60_000,
  }, async () => {
    const store = await place.migrated();
    await place.query(`insert into $s.claims (id, attempt_id, namespace, kind, key, name, fingerprint, holder, lease_ms, state,
      token, version, lease_until, created_at, claimed_at, settled_at)
      select sha256(i::text::bytea), substr(sha256(i::text::bytea), 1, 16), 'test', 'effect', i::text, 'charge', '1', 'w', 1, 'completed', 1, 2,
        'epoch', now() - interval '2 days', 'epoch', now() - interval '1 day' from generate_series(1, 2500) i`);
    const client = await place.client();
    await client.query("begin");
    await client.query(`select from ${place.schema}.claims where key in ('7', '8') for update`);
    const query = { namespace: "test", olderThanMs: 3_600_000, limit: 2_200 };
    expect(await store.prune(query)).toBe(2_200);
    expect(await store.prune(query)).toBe(298);
    await client.query("rollback");
    expect(await store.prune(query)).toBe(2);
  });
});
