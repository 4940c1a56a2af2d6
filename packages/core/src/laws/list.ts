import assert from "node:assert/strict";
import type { ClaimRecord, ListQuery, Store } from "../store.ts";
import type { StoreLaw } from "./harness.ts";
import {
  claim,
  lapse,
  look,
  receipt,
  requestOf,
  scene,
  settle,
  settledStates,
  told,
  win,
  winAgain,
} from "./requests.ts";

/** What the interface alone asks: get, list, health, migrate. */
export const listLaws: readonly StoreLaw[] = [
  {
    number: 0,
    name: "get answers in the order of the ids, with null for what has no row",
    async check(harness) {
      const { store, effect } = await scene(harness);
      const ids = ["a", "b", "c", "d"].map((key) => effect(key).id);
      for (const key of ["c", "a", "d"]) await win(store, effect(key));
      const records = await store.get(ids.toReversed());
      assert.deepEqual(
        records.map((record) => record?.key ?? null),
        ["d", "c", null, "a"],
      );
      assert.deepEqual(await store.history(ids[1] ?? ""), []);
    },
  },
  {
    number: 0,
    name: "a list tells oldest first, by time of creation and id",
    async check(harness) {
      const { store, effect, namespace } = await scene(harness);
      await store.claim(["a", "b", "c"].map((key) => effect(key)));
      for (const key of ["d", "e", "f"]) await win(store, effect(key));
      await settle(store, await win(store, effect("g")), "released");
      await winAgain(store, effect("g"));
      const records = await all(store, { namespace, limit: 100 });
      assert.equal(records.length, 7);
      const sorted = records.toSorted((x, y) => x.createdAt - y.createdAt || (x.id < y.id ? -1 : 1));
      assert.deepEqual(records, sorted);
    },
  },
  {
    number: 0,
    name: "pages follow each other without loss or repeats, also when rows change in between",
    async check(harness) {
      const { store, other, effect, namespace } = await scene(harness);
      const keys = Array.from({ length: 11 }, (_, index) => `order:${index}`);
      await store.claim(keys.slice(0, 6).map((key) => effect(key)));
      for (const key of keys.slice(6)) await settle(store, await win(store, effect(key)), "released");
      for (const limit of [1, 3, 11, 12]) {
        const records = await all(store, { namespace, limit });
        assert.deepEqual(records.map(({ key }) => key).sort(), keys.toSorted());
      }
      const first = await store.list({ namespace, limit: 4 });
      assert.equal(first.records.length, 4);
      for (const key of keys.slice(6)) await winAgain(other, effect(key));
      await claim(other, effect("order:11"));
      const rest = await all(store, { namespace, limit: 4, after: first.next });
      const seen = [...first.records, ...rest].map(({ key }) => key);
      assert.equal(new Set(seen).size, seen.length);
      assert.deepEqual(seen.filter((key) => keys.includes(key)).sort(), keys.toSorted());
    },
  },
  {
    number: 0,
    name: "a list chooses by kind and by state, derived states among them",
    async check(harness) {
      const { store, effect, lock, namespace } = await scene(harness);
      await win(store, effect("lapsed"));
      await lapse(harness, store, lock("lapsed"));
      await store.abandon(await win(store, effect("abandoned")), "shutdown");
      await store.abandon(await win(store, lock("abandoned")), "shutdown");
      for (const build of [effect, lock]) {
        await win(store, build("living"));
        for (const state of settledStates) await settle(store, await win(store, build(state)), state, receipt);
      }
      const keys = async (query: Partial<ListQuery>) =>
        (await all(store, { namespace, limit: 2, ...query })).map(({ kind, key }) => `${kind} ${key}`).sort();
      assert.deepEqual(await keys({ state: "in-doubt" }), ["effect abandoned", "effect lapsed"]);
      assert.deepEqual(await keys({ state: "lapsed" }), ["lock abandoned", "lock lapsed"]);
      assert.deepEqual(await keys({ state: "claimed" }), ["effect living", "lock living"]);
      assert.deepEqual(await keys({ state: "claimed", kind: "lock" }), ["lock living"]);
      assert.deepEqual(await keys({ state: "in-doubt", kind: "lock" }), []);
      for (const state of settledStates) assert.deepEqual(await keys({ state, kind: "effect" }), [`effect ${state}`]);
      assert.equal((await keys({ kind: "lock" })).length, 6);
      assert.equal((await keys({})).length, 12);
    },
  },
  {
    number: 0,
    name: "a list chooses by scope and by name, compared as bytes",
    async check(harness) {
      const { store, effect, namespace } = await scene(harness);
      const texts = ["a", "A", "a ", "á", "a\u0301"];
      for (const text of texts) {
        await win(store, effect(`scope ${text}`, { scope: text }));
        await win(store, effect(`name ${text}`, { name: text }));
      }
      for (const text of texts)
        for (const by of ["scope", "name"]) {
          const records = await all(store, { namespace, limit: 10, [by]: text });
          assert.deepEqual(
            records.map(({ key }) => key),
            [`${by} ${text}`],
          );
        }
      assert.deepEqual(await all(store, { namespace, limit: 10, scope: "a", name: "a" }), []);
    },
  },
  {
    number: 0,
    name: "a list shows no other namespace, compared as bytes",
    async check(harness) {
      const { store, namespace } = await scene(harness);
      const namespaces = [namespace, `${namespace}a`, `${namespace}A`, `${namespace}a `, `${namespace}á`];
      for (const each of namespaces) await win(store, requestOf(each, "effect", "order:1"));
      for (const each of namespaces) {
        const records = await all(store, { namespace: each, limit: 10 });
        assert.deepEqual(
          records.map((record) => record.namespace),
          [each],
        );
      }
      assert.deepEqual(await store.list({ namespace: `${namespace}-unused`, limit: 10 }), { records: [] });
    },
  },
  {
    number: 0,
    name: "health tells the store's clock, which moves with the rows' moments, and warns in sentences",
    async check(harness) {
      const { store, other, effect } = await scene(harness);
      const { now, warnings } = await store.health();
      assert.ok(Number.isSafeInteger(now) && now > Date.UTC(2024), `${now} is no moment in milliseconds`);
      assert.ok(warnings.every((warning) => typeof warning === "string" && warning !== ""));
      await win(store, effect());
      assert.ok((await look(store, effect().id)).readAt >= now);
      assert.ok((await other.health()).now >= now);
    },
  },
  {
    number: 0,
    name: "migrating again, and from several connections at once, harms nothing",
    async check(harness) {
      const { store, other, effect } = await scene(harness);
      const ref = await win(store, effect());
      await store.abandon(ref, "shutdown");
      await store.migrate();
      await Promise.all([store.migrate(), other.migrate(), store.migrate(), other.migrate()]);
      assert.equal(await settle(other, ref, "completed", receipt), "settled");
      assert.deepEqual((await look(store, ref.id)).payload, receipt);
      assert.deepEqual(await told(store, ref.id), ["abandoned"]);
    },
  },
  {
    number: 0,
    name: "a place that no page gave is refused",
    async check(harness) {
      const { store, namespace } = await scene(harness);
      for (const after of ["nonsense", "", "1:2", "-1:".padEnd(67, "0")])
        await assert.rejects(store.list({ namespace, limit: 10, after }), { code: "INVALID_ARGUMENT" });
    },
  },
];

/** Every page, in order; the last one has no `next`. */
async function all(store: Store, query: ListQuery): Promise<readonly ClaimRecord[]> {
  const records: ClaimRecord[] = [];
  for (let { after } = query; ; ) {
    const page = await store.list({ ...query, after });
    assert.ok(page.records.length <= query.limit);
    records.push(...page.records);
    if (page.next === undefined) return records;
    assert.ok(page.records.length > 0 && page.next !== after, "a page that leads nowhere");
    after = page.next;
  }
}
