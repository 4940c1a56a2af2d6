import { describeOn } from "@twiceproof/test-servers/vitest";
import { expect, it } from "vitest";
import { mysqlStore, printMigrations } from "../src/index.ts";
import { oddOptions, oddSession } from "./support/connect.ts";
import { complete, effect, poolOn, scratchUrl, storeOn, ticket, win } from "./support/scratch.ts";

/** The driver's own escaping turns the first of these into `\'`, which ends a string where a backslash escapes nothing. */
const hostileTexts = [
  "'); drop table twiceproof_history; -- ",
  "\\'); drop table twiceproof_history; -- ",
  '"); drop table twiceproof_history; -- ',
  "` ? :key @key %s \\",
  "\u5c27'); drop table twiceproof_history; -- ",
  "/*! drop table twiceproof_history */",
];

describeOn(["mariadb", "mysql"], "hostile text", (server) => {
  it("is kept as it is, one by one and in lists, where no backslash escapes", async () => {
    const url = await scratchUrl(server.url);
    const store = await storeOn(url, { multipleStatements: true }, "sql_mode = 'NO_BACKSLASH_ESCAPES,ANSI_QUOTES'");
    const named = (text: string) => ({
      name: text,
      scope: text,
      turn: text,
      runId: text,
      holder: text,
      fingerprint: text,
    });
    for (const text of hostileTexts) await complete(store, await win(store, effect(text, named(text))), text);
    const requests = hostileTexts.map((text) => effect(`list ${text}`, named(text)));
    const claimed = await store.claim(requests);
    expect(claimed.map(({ answer }) => answer)).toEqual(hostileTexts.map(() => "won"));
    const payloads = hostileTexts.map((text) => ({ format: text, text }));
    const settlements = requests.map(({ id, attemptId }, index) => {
      const payload = payloads[index] ?? null;
      return { id, attemptId, token: 1, state: "completed" as const, payload };
    });
    expect(await store.settle(settlements)).toEqual(hostileTexts.map(() => "settled"));
    const records = await store.get(requests.map(({ id }) => id));
    for (const [index, text] of hostileTexts.entries()) {
      expect(records[index]).toMatchObject({ key: `list ${text}`, ...named(text), payload: payloads[index] });
      const { records: found } = await store.list({ namespace: "test", limit: 10, name: text, scope: text });
      expect(found.map(({ key }) => key).sort()).toEqual([`list ${text}`, text].sort());
      expect(await store.history(records[index]?.id ?? "")).toEqual([]);
    }
  });

  it("is kept as it is in a list that shares it, and by whom it is not shared", async () => {
    const store = await storeOn(await scratchUrl(server.url), oddOptions, oddSession);
    const long = "\u00e9".repeat(70_000);
    for (const text of [...hostileTexts, "caf\u00e9 \u{1f600}", ""]) {
      const keys = ["one", "two", "three"].map((key) => `${key} ${text}`);
      for (const odd of [false, true]) {
        const facts = { scope: text, turn: text, runId: text, holder: text, fingerprint: text };
        const requests = keys.map((key, index) => effect(`${odd} ${key}`, odd && index === 1 ? {} : facts));
        expect(await store.claim(requests)).toEqual(requests.map(() => ({ answer: "won", token: 1 })));
        const payloads = requests.map((_, index) => (odd && index === 1 ? null : { format: text, text: text + long }));
        const settlements = requests.map(({ id, attemptId }, index) => {
          return { id, attemptId, token: 1, state: "completed" as const, payload: payloads[index] ?? null };
        });
        expect(await store.settle(settlements)).toEqual(requests.map(() => "settled"));
        const records = await store.get(requests.map(({ id }) => id));
        for (const [index, request] of requests.entries()) {
          const { scope, turn, runId, holder, fingerprint } = request;
          const told = { scope, turn, runId, holder, fingerprint, payload: payloads[index] ?? null };
          expect(records[index]).toMatchObject(told);
        }
      }
    }
  });

  it("comes back from a line as it was given", async () => {
    const store = await storeOn(await scratchUrl(server.url), oddOptions, oddSession);
    for (const text of hostileTexts) await store.queue(ticket("thread", { holder: text, runId: text, maxQueue: 99 }));
    const line = await store.line(ticket("thread").id);
    expect(line.map(({ holder }) => holder)).toEqual(hostileTexts);
    expect(line.map(({ runId }) => runId)).toEqual(hostileTexts);
  });

  it("as a namespace finds itself alone", async () => {
    const store = await storeOn(await scratchUrl(server.url), oddOptions, oddSession);
    for (const namespace of hostileTexts) await win(store, { ...effect(namespace), namespace });
    for (const namespace of hostileTexts) {
      const { records } = await store.list({ namespace, limit: 10 });
      expect(records.map(({ key }) => key)).toEqual([namespace]);
    }
  });
});

it.each(["", "a`b", "a b", "a-b", "a.b", "'; drop table x; --", "1st_", "ä_", "a\n", "x".repeat(33)])(
  "a prefix that is no plain name is refused: %j",
  (prefix) => {
    const client = { query: () => undefined, execute: () => undefined };
    for (const make of [() => mysqlStore(client, { prefix }), () => printMigrations({ prefix })])
      expect(make).toThrow(expect.objectContaining({ code: "INVALID_ARGUMENT" }));
  },
);

it("what is neither a pool nor a connection is refused", () => {
  for (const client of [null, {}, "mysql://root@localhost"])
    expect(() => mysqlStore(client as never)).toThrow(expect.objectContaining({ code: "INVALID_ARGUMENT" }));
});

describeOn(["mariadb", "mysql"], "a prefix", (server) => {
  it("keeps two stores of one database apart", async () => {
    const pool = poolOn(await scratchUrl(server.url));
    const stores = ["a_", "Key2_"].map((prefix) => mysqlStore(pool, { prefix }));
    for (const store of stores) await store.migrate();
    for (const store of stores) expect((await win(store, effect("order:1"))).token).toBe(1);
    const [tables] = await pool.query(
      "select count(*) as made from information_schema.tables where table_schema = database()",
    );
    expect(tables).toEqual([{ made: 8 }]);
  });
});
