import assert from "node:assert/strict";
import { claimId } from "../id.ts";
import type { StoreLaw } from "./harness.ts";
import { facts, look, refused, requestOf, rival, scene, settle, win, winAgain } from "./requests.ts";

/** Promise 6, and what a free key is: which requests mean the same claim. */
export const keyLaws: readonly StoreLaw[] = [
  {
    number: 6,
    name: "keys that differ by case, accent, composition, blanks or length are different claims",
    async check(harness) {
      const { store, other, effect } = await scene(harness);
      const keys = [
        "a",
        "A",
        "a ",
        " a",
        "a\t",
        "aa",
        "á",
        "ä",
        "\u00e9",
        "e\u0301",
        "E\u0301",
        "ß",
        "ss",
        "ı",
        "i",
        "ﬀ",
      ];
      const requests = keys.map((key) => effect(key));
      assert.equal(new Set(requests.map((request) => request.id)).size, keys.length);
      for (const request of requests) assert.equal((await win(store, request)).token, 1);
      const records = await other.get(requests.map((request) => request.id));
      assert.deepEqual(
        records.map((record) => record?.key),
        keys,
      );
    },
  },
  {
    number: 6,
    name: "namespace, kind and key never run together",
    async check(harness) {
      const { store, namespace } = await scene(harness);
      const requests = [
        requestOf(`${namespace}a`, "effect", "bc"),
        requestOf(`${namespace}ab`, "effect", "c"),
        requestOf(`${namespace}A`, "effect", "bc"),
        requestOf(`${namespace}a`, "lock", "bc"),
        requestOf(`${namespace}a`, "effect", "lockbc"),
      ];
      for (const request of requests) assert.equal((await win(store, request)).token, 1);
      const records = await store.get(requests.map((request) => request.id));
      assert.deepEqual(
        records.map((record) => [record?.namespace, record?.kind, record?.key]),
        requests.map((request) => [request.namespace, request.kind, request.key]),
      );
      assert.notEqual(claimId("a", "effect", "bc"), claimId("ab", "effect", "c"));
    },
  },
  {
    number: 0,
    name: "a free key is not free for another fingerprint",
    async check(harness) {
      const { store, other, effect } = await scene(harness);
      const request = effect();
      await settle(store, await win(store, request), "released");
      const { version: seen } = await look(store, request.id);
      for (const attempt of [null, seen]) {
        const record = await refused(other, rival(request, { seen: attempt, fingerprint: "1:other" }));
        assert.equal(record.fingerprint, request.fingerprint);
        assert.equal(record.state, "released");
      }
      assert.equal((await winAgain(other, request)).token, 2);
    },
  },
  {
    number: 0,
    name: "a free key is told as free, and granted only to a request that names its version",
    async check(harness) {
      const { store, other, effect } = await scene(harness);
      const request = effect();
      await settle(store, await win(store, request), "released");
      const record = await refused(other, rival(request), "free");
      assert.deepEqual(facts(record), facts(await look(store, request.id)));
      await refused(other, rival(request, { seen: record.version - 1 }), "free");
      await refused(other, rival(request, { seen: record.version + 1 }), "free");
      assert.equal((await win(other, rival(request, { seen: record.version }))).token, 2);
    },
  },
];
