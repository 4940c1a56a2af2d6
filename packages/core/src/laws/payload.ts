import assert from "node:assert/strict";
import type { Payload } from "../store.ts";
import type { StoreLaw } from "./harness.ts";
import { decided, decision, lapse, look, refused, resolve, rival, scene, settle, win } from "./requests.ts";

/** Text that databases like to improve: each of these was changed or refused by some column type of some server. */
const texts: readonly string[] = [
  "",
  " ",
  "null",
  '{"b":1,"a":2,"a":3}',
  '{ "spaced" : [1.0, 1e2, 12345678901234567890, -0] }',
  String.raw`"\u0000"`,
  String.raw`"\ud800 and \udfff"`,
  String.raw`"\" ' \\ % _ $1 ? :name @p"`,
  "'; drop table claims; --",
  "trailing blanks   ",
  "\ttabs\r\nand\nlines\n",
  "\u00e9 e\u0301 ß ﬀ İ ı",
  "漢字 \u{1f600} \u{1f468}\u200d\u{1f469}\u200d\u{1f467} \u202e \ufeff",
];

/** Promise 7: what was recorded is what comes back. */
export const payloadLaws: readonly StoreLaw[] = [
  {
    number: 7,
    name: "a result comes back to the byte, whatever its text, with its format",
    async check(harness) {
      const { store, other, effect } = await scene(harness);
      for (const [index, text] of texts.entries())
        for (const format of ["json", "devalue/1 Ü"]) {
          const request = effect(`text ${index} as ${format}`);
          assert.equal(await settle(store, await win(store, request), "completed", { format, text }), "settled");
          assert.deepEqual((await refused(other, rival(request))).payload, { format, text });
          assert.deepEqual((await look(other, request.id)).payload, { format, text });
        }
    },
  },
  {
    number: 7,
    name: "a result of a megabyte comes back to the byte",
    async check(harness) {
      const { store, other, effect } = await scene(harness);
      const text = "0123456789abcdef\u{1f600}é\\\n".repeat(2 ** 20 / 25);
      const ref = await win(store, effect());
      assert.equal(await settle(store, ref, "completed", { format: "json", text }), "settled");
      assert.ok((await look(other, ref.id)).payload?.text === text, "the text differs");
    },
  },
  {
    number: 7,
    name: "results of very different lengths in one list come back to the byte",
    async check(harness) {
      const { store, other, effect } = await scene(harness);
      // MariaDB gave all rows of a list the longest one's length modulo 65,536.
      const texts = [10, 400_000, 65_537, 0].map((length) => "x".repeat(length));
      const refs = [];
      for (const [index] of texts.entries()) refs.push(await win(store, effect(`order:${index}`)));
      const settlements = refs.map((ref, index) => ({
        ...ref,
        state: "completed" as const,
        payload: { format: "json", text: texts[index] ?? "" },
      }));
      assert.deepEqual(
        await store.settle(settlements),
        refs.map(() => "settled"),
      );
      const lengths = (await other.get(refs.map(({ id }) => id))).map((record) => record?.payload?.text.length);
      assert.deepEqual(
        lengths,
        texts.map(({ length }) => length),
      );
    },
  },
  {
    number: 7,
    name: "no payload and an empty text are two things, and so are two formats of one text",
    async check(harness) {
      const { store, effect } = await scene(harness);
      const payloads: readonly (Payload | null)[] = [
        null,
        { format: "json", text: "" },
        { format: "none", text: "" },
        { format: "json", text: "null" },
      ];
      for (const [index, payload] of payloads.entries()) {
        const ref = await win(store, effect(`payload ${index}`));
        await settle(store, ref, "completed", payload);
        assert.deepEqual((await look(store, ref.id)).payload, payload);
        const answers = await Promise.all(payloads.map((each) => settle(store, ref, "completed", each)));
        assert.deepEqual(
          answers,
          payloads.map((_, other) => (other === index ? "already" : "lost")),
        );
      }
    },
  },
  {
    number: 7,
    name: "what a verdict or a late holder brings is kept to the byte, on the row and in the history",
    async check(harness) {
      const { store, effect } = await scene(harness);
      for (const [index, text] of texts.entries()) {
        const [said, late] = [
          { format: "said", text },
          { format: "late", text },
        ] as const;
        const ref = await decided(harness, store, effect(`text ${index}`), "completed", said);
        await settle(store, ref, "completed", late);
        assert.deepEqual((await look(store, ref.id)).payload, said);
        assert.deepEqual(
          (await store.history(ref.id)).map((entry) => entry.payload),
          [said, late],
        );
      }
    },
  },
  {
    number: 7,
    name: "names, holders and reasons come back as they were given",
    async check(harness) {
      const { store, other, effect } = await scene(harness);
      for (const text of texts.filter((text) => text !== "")) {
        const named = { name: text, scope: text, turn: text, runId: text, holder: text };
        const request = effect(text, named);
        const ref = await lapse(harness, store, request);
        const { key, name, scope, turn, runId, holder } = await look(other, ref.id);
        assert.deepEqual({ key, name, scope, turn, runId, holder }, { key: text, ...named });
        const by = decision({ who: text, why: text, evidence: text });
        await resolve(other, await look(other, ref.id), "released", null, by);
        const [entry] = await store.history(ref.id);
        assert.deepEqual([entry?.who, entry?.why, entry?.evidence], [text, text, text]);
      }
    },
  },
  {
    number: 7,
    name: "what a caller does to an answer or to its own request does not reach the store",
    async check(harness) {
      const { store, effect } = await scene(harness);
      const request = effect();
      const payload = { format: "json", text: "1" };
      await settle(store, await win(store, request), "completed", payload);
      payload.text = "2";
      for (const record of await store.get([request.id])) {
        Reflect.set(record ?? {}, "state", "released");
        Reflect.set(record?.payload ?? {}, "text", "3");
      }
      const { state, payload: kept } = await look(store, request.id);
      assert.deepEqual([state, kept], ["completed", { format: "json", text: "1" }]);
    },
  },
];
