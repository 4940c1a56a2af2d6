import { randomBytes } from "node:crypto";
import { mysqlStore } from "@twiceproof/store-mysql";
import { postgresStore } from "@twiceproof/store-postgres";
import { describeOn } from "@twiceproof/test-servers/vitest";
import { createPool } from "mysql2/promise";
import { Pool } from "pg";
import { expect, it } from "vitest";
import { everywhere, newest, newWorld, range, sceneOn } from "./support.ts";

/** Pairs that a collation or a padded column takes for one. */
const alike = [
  "order",
  "Order",
  "ORDER",
  "order ",
  "order  ",
  " order",
  "order\t",
  "order\n",
  "ordér",
  "orde\u0301r",
  "ord\u00e9r\u200b",
  "orde\u0301r ",
  "stra\u00dfe",
  "strasse",
  "STRASSE",
  "\u0130stanbul",
  "istanbul",
  "\u0131stanbul",
  "\u212bngstr\u00f6m",
  "\u00c5ngstr\u00f6m",
  "\uff11",
  "1",
  "01",
  "1.0",
  "\ufb01n",
  "fin",
  "\u6771\u4eac",
  "\u{1f4b3}",
  "\u{1f4b3}\ufe0f",
  "\u{10ffff}",
  "x".repeat(511),
  "x".repeat(512),
];

const hostile = [
  "'); drop table twiceproof_claims; --",
  "'; drop schema twiceproof cascade; --",
  "\\'; select 1; -- ",
  "\\",
  '"',
  "`",
  "$1 $2 ? :key @key %s {} {null} null",
  "/*! set global read_only = 1 */",
  "\u5c27'",
  "\u0001\u001f\u007f",
];

describeOn(everywhere, "keys", (server) => {
  it.concurrent("6: that differ only in case, accents, blanks or Unicode form are different effects", async (context) => {
    const scene = await sceneOn(server, context);
    const world = newWorld();
    const [tp, other] = [scene.tp(), scene.tp()];
    // In one list, then one by one.
    const results = await Promise.all(alike.map((key) => tp.once(key, () => world.act(key))));
    expect(results).toMatchObject(alike.map((key) => ({ key })));
    for (const [index, key] of alike.entries())
      expect(await other.once(key, () => world.act(key))).toEqual(results[index]);
    expect([...world.all]).toEqual(alike.map((key) => [key, 1]));
    for (const key of alike) expect((await scene.record(key))?.key).toBe(key);
  });

  it.concurrent("6: that differ only so are different threads, locks, scopes and turns", async (context) => {
    const scene = await sceneOn(server, context);
    const tp = scene.tp();
    // All at once: each would be busy if another were the same.
    const all = Promise.withResolvers<void>();
    let inside = 0;
    const enter = async (): Promise<void> => {
      if (++inside === 2 * alike.length) all.resolve();
      await all.promise;
    };
    await Promise.all(
      alike.flatMap((key) => [
        tp.withRun({ thread: key, turn: key }, async (run) => {
          await run.once(key, () => key);
          await enter();
        }),
        tp.exclusive(key, enter),
      ]),
    );
    for (const key of alike) {
      const { records } = await scene.store.list({
        namespace: scene.namespace,
        kind: "effect",
        scope: key,
        limit: 100,
      });
      expect(records.map((record) => [record.key, record.turn])).toEqual([[key, key]]);
    }
  });
});

describeOn(newest, "results", (server) => {
  it.concurrent("7: of a megabyte come back as they were, alone and in lists, small ones among them", async (context) => {
    const scene = await sceneOn(server, context);
    const world = newWorld();
    const [tp, other] = [scene.tp(), scene.tp()];
    // Neither compresses: one near the cap, and many of some size that do not fit one list.
    const results = [
      randomBytes(780_000).toString("base64"),
      ...range(8).map(() => randomBytes(300_000).toString("base64")),
      ...range(20).map((index) => `small ${index}`),
      "\u{1f4b3}\\'\"\n\u0001".repeat(100_000),
    ];
    const first = await Promise.all(
      results.map((result, index) =>
        tp.once(`order:${index}`, () => {
          world.act(`order:${index}`);
          return result;
        }),
      ),
    );
    expect(first.map((result, index) => result === results[index])).toEqual(results.map(() => true));
    const replayed = await Promise.all(results.map((_, index) => other.once(`order:${index}`, () => "again")));
    expect(replayed.map((result, index) => result === results[index])).toEqual(results.map(() => true));
    expect([...world.all.values()]).toEqual(results.map(() => 1));
  });
});

describeOn(everywhere, "hostile text", (server) => {
  it.concurrent("6: is kept as it is, as a key, scope, turn, result, owner, verdict and namespace", async (context) => {
    const scene = await sceneOn(server, context);
    const { store } = scene.connect();
    const requests = hostile.map((text) =>
      scene.request("effect", text, {
        name: text,
        scope: text,
        turn: text,
        runId: text,
        holder: text,
        fingerprint: text,
      }),
    );
    expect(await store.claim(requests)).toEqual(hostile.map(() => ({ answer: "won", token: 1 })));
    for (const [index, text] of hostile.entries()) {
      const { id, attemptId } = requests[index] ?? scene.request("effect", "none");
      await store.abandon({ id, attemptId, token: 1 }, text);
      const by = { decisionId: attemptId, who: text, why: text, evidence: text };
      const verdict = { state: "failed", payload: { format: text, text } } as const;
      expect(await store.resolve({ id, token: 1, version: 2 }, verdict, by)).toBe("done");
      const same = { name: text, scope: text, turn: text, runId: text, holder: text };
      expect((await store.get([id]))[0]).toMatchObject({ key: text, ...same, payload: { format: text, text } });
      expect(await store.history(id)).toMatchObject([
        { what: "abandoned", who: text, why: text },
        { what: "verdict-failed", who: text, why: text, evidence: text, payload: { format: text, text } },
      ]);
      const { records } = await store.list({ namespace: scene.namespace, scope: text, name: text, limit: 9 });
      expect(records.map(({ key }) => key)).toEqual([text]);
    }
    const plain = hostile.filter((text) => !/\p{Cc}/u.test(text));
    for (const namespace of plain) {
      const mine = `${namespace} ${scene.namespace}`;
      const tp = scene.tp({ namespace: mine });
      expect(await tp.once("order:1", () => mine)).toBe(mine);
      expect((await store.list({ namespace: mine, limit: 9 })).records).toHaveLength(1);
    }
  });

  it.concurrent("6: as the name of a schema or a prefix, it is refused before anything is sent", async (context) => {
    const scene = await sceneOn(server, context);
    const names = [...hostile, "", "a b", "a-b", "a.b", "1st", "\u00e4", "a\n", "x".repeat(64), "__proto__\0"];
    for (const name of names) {
      const make = () => {
        if (scene.isPostgres) return postgresStore(new Pool({ connectionString: scene.url }), { schema: name });
        return mysqlStore(createPool(scene.url), { prefix: name });
      };
      expect(make).toThrow(expect.objectContaining({ code: "INVALID_ARGUMENT" }));
    }
  });

  it.concurrent("6: a reserved word or a mixed case as a schema or a prefix is a name like any other", async (context) => {
    const scene = await sceneOn(server, context);
    for (const name of ["select", "Order", "order", "user"]) {
      const { isPostgres, url } = scene;
      const pool = isPostgres
        ? new Pool({ connectionString: url, max: 1 })
        : createPool({ uri: url, connectionLimit: 1 });
      context.onTestFinished(() => pool.end());
      const store = pool instanceof Pool ? postgresStore(pool, { schema: name }) : mysqlStore(pool, { prefix: name });
      await store.migrate();
      expect(await store.claim([scene.request("effect", "order:1")])).toEqual([{ answer: "won", token: 1 }]);
    }
  });
});
