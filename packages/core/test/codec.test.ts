import { randomBytes } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { runInNewContext } from "node:vm";
import fc from "fast-check";
import { describe, expect, it, test } from "vitest";
import { done } from "../src/classify.ts";
import { type CodecType, createCodec, type Encoded } from "../src/codec.ts";
import { defineEffect } from "../src/effect.ts";
import { isTwiceproofError } from "../src/errors.ts";
import { rejection } from "./support/waiting.ts";
import { world } from "./support/world.ts";

const codec = createCodec();

async function kept(value: unknown, using = codec): Promise<Encoded & { kept: true }> {
  const encoded = await using.encode(value);
  if (!encoded.kept) throw new Error(encoded.why);
  // Promise 7: the first caller gets the form that later callers get.
  expect(encoded.value).toStrictEqual(await using.decode(encoded.payload));
  return encoded;
}

async function why(value: unknown, using = codec): Promise<string> {
  const encoded = await using.encode(value);
  if (encoded.kept) throw new Error("it was kept");
  return encoded.why;
}

describe("plain JSON", () => {
  test.each<[unknown]>([
    [null],
    [""],
    ["\0\ud800\u2028<é𝄞"],
    [0],
    [-1.5e300],
    [false],
    [[]],
    [[1, [null, { a: "b" }]]],
    [{ b: 1, a: { c: [] }, "2": 0, "1": 0 }],
    [JSON.parse('{"__proto__":{"x":1},"constructor":2,"toJSON":3}')],
  ])("%o stays readable", async (value) => {
    const { payload, value: copy } = await kept(value);
    expect(payload).toEqual({ format: "json", text: JSON.stringify(value) });
    expect(JSON.stringify(copy)).toBe(JSON.stringify(value));
    expect(isDeepStrictEqual(copy, value)).toBe(true);
  });

  test("the first caller gets a copy", async () => {
    const result = { items: [{ id: 1 }] };
    const { payload, value } = await kept(result);
    (value as typeof result).items.length = 0;
    result.items.push({ id: 2 });
    expect(await codec.decode(payload)).toEqual({ items: [{ id: 1 }] });
  });

  test("own __proto__ keys set no prototype", async () => {
    const { value } = await kept(JSON.parse('{"__proto__":{"admin":true}}'));
    expect((value as { admin?: boolean }).admin).toBeUndefined();
    expect(Object.keys(value as object)).toEqual(["__proto__"]);
  });

  test("what is not enumerable is no part of a result", async () => {
    const charge = { id: "ch_1", amount: 5 };
    Object.defineProperty(charge, "lastResponse", { value: { headers: {}, send: () => 0 } });
    Object.defineProperty(charge, Symbol("request"), { value: 1 });
    expect((await kept(charge)).payload).toEqual({ format: "json", text: '{"id":"ch_1","amount":5}' });
  });

  test("a hidden toJSON is not asked", async () => {
    const charge = Object.defineProperty({ id: "ch_1" }, "toJSON", { value: () => "another" });
    const { payload, value } = await kept(charge);
    expect(payload.format).toBe("rich/1");
    expect(value).toStrictEqual({ id: "ch_1" });
  });

  test("a plain object of another realm", async () => {
    expect((await kept(runInNewContext("({ a: [1] })"))).payload.text).toBe('{"a":[1]}');
  });
});

test("undefined is void", async () => {
  expect(await kept(undefined)).toEqual({ kept: true, payload: { format: "void", text: "" }, value: undefined });
});

describe("rich values", () => {
  const shared = { a: 1 };
  test.each<[string, unknown]>([
    ["Date", { at: new Date(5) }],
    [
      "Map",
      new Map<unknown, unknown>([
        ["a", { x: 1 }],
        [{ k: 1 }, new Set([1, "1"])],
      ]),
    ],
    ["bigint", [2n ** 70n, -1n]],
    ["undefined inside", { a: undefined, b: [undefined] }],
    ["NaN, -0 and infinities", [Number.NaN, -0, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]],
    ["only -0", -0],
    ["URL", new URL("https://example.com/é?q#f")],
    ["URLSearchParams", new URLSearchParams("a=1&a=2")],
    ["RegExp", /a\/b\0é/giu],
    ["Uint8Array", new Uint8Array([1, 2, 3])],
    ["Buffer", Buffer.from("héllo")],
    ["ArrayBuffer", new Uint8Array([9, 8]).buffer],
    ["Float64Array", new Float64Array([1.5, Number.NaN])],
    ["BigInt64Array", new BigInt64Array([-5n])],
    ["DataView", new DataView(new Uint8Array([1, 2]).buffer)],
    ["holes", Object.assign(new Array(3), { 0: 1, 2: 3 })],
    ["very sparse", Object.assign(new Array(1_000_000), { 999: "x" })],
    ["no prototype", Object.assign(Object.create(null), { a: 1 })],
    [
      "__proto__ beside a Date",
      Object.defineProperty({ at: new Date(0) }, "__proto__", { value: { a: 1 }, enumerable: true }),
    ],
    [
      "__proto__ without a prototype",
      Object.defineProperty(Object.create(null), "__proto__", { value: 1n, enumerable: true }),
    ],
    ["one object twice", [shared, shared]],
  ])("%s", async (_, value) => {
    const { payload, value: copy } = await kept(value);
    expect(payload.format).toBe("rich/1");
    expect(isDeepStrictEqual(copy, value)).toBe(true);
  });

  test("an invalid Date", async () => {
    expect((await kept({ at: new Date(Number.NaN) })).value).toStrictEqual({ at: new Date(Number.NaN) });
  });

  test("cycles and identity", async () => {
    const order: Record<string, unknown> = { id: 1, at: new Date(0) };
    order.self = order;
    order.lines = [order, order.at];
    const { value } = await codec.encode(order).then((encoded) => encoded as { value: Record<string, unknown> });
    expect(value.self).toBe(value);
    expect((value.lines as unknown[])[1]).toBe(value.at);
  });

  test("a Buffer comes back as one, and of a view only its own bytes are recorded", async () => {
    const pool = Buffer.from("secret-visible-secret");
    for (const view of [pool.subarray(7, 14), new Uint8Array(pool.buffer, pool.byteOffset + 7, 7)]) {
      const { payload, value } = await kept({ view });
      expect(isDeepStrictEqual(value, { view })).toBe(true);
      const bytes = (value as { view: Uint8Array }).view;
      expect(Buffer.isBuffer(bytes)).toBe(Buffer.isBuffer(view));
      expect(Buffer.from(bytes).toString()).toBe("visible");
      expect(payload.text).not.toContain(Buffer.from("secret").toString("base64"));
      expect(payload.text).toContain(Buffer.from("visible").toString("base64"));
    }
    const { value } = await kept(new Uint8Array([1]));
    expect((value as Uint8Array).buffer.byteLength).toBe(1);
  });

  test("Error keeps name, message, code and cause", async () => {
    class CardError extends Error {
      override name = "CardError";
      code = "card_declined";
      raw = { number: "4242" };
    }
    const error = new CardError("declined", { cause: new RangeError("too much", { cause: { limit: 5n } }) });
    const { payload, value } = await kept(error);
    const copy = value as CardError & { cause: RangeError };
    expect(copy).toBeInstanceOf(Error);
    expect([copy.name, copy.message, copy.code]).toEqual(["CardError", "declined", "card_declined"]);
    expect(copy.cause).toBeInstanceOf(RangeError);
    expect(copy.cause.cause).toEqual({ limit: 5n });
    expect(copy.stack).toBe("CardError: declined");
    expect(Object.keys(copy)).toEqual(["code"]);
    expect(payload.text).not.toMatch(/codec\.test|4242/);
    const plain = (await kept(new TypeError("x"))).value as TypeError;
    expect([plain instanceof TypeError, Object.hasOwn(plain, "name"), "cause" in plain]).toEqual([true, false, false]);
  });

  test("AggregateError keeps its members", async () => {
    const { value } = await kept(new AggregateError([new Error("a"), 2], "both"));
    expect(value).toBeInstanceOf(AggregateError);
    expect((value as AggregateError).errors).toEqual([new Error("a"), 2]);
  });
});

describe("not kept", () => {
  class Client {
    id = 1;
  }
  test.each<[string, unknown, string]>([
    ["function", () => "secret", "`result` is a function"],
    ["symbol", [Symbol("secret")], "`result[0]` is a symbol"],
    ["class instance", { data: [{ client: new Client() }] }, "`result.data[0].client` is an instance of Client"],
    ["subclass", new (class Rows extends Array {})(), "`result` is an instance of Rows"],
    ["Promise", { "a b": Promise.resolve(1) }, '`result["a b"]` is a Promise'],
    ["Response", new Response("secret"), "`result` is an instance of Response"],
    ["boxed", new String("secret"), "`result` is an instance of String"],
    ["WeakMap", new WeakMap(), "`result` is an instance of WeakMap"],
    ["symbol key", { [Symbol("secret")]: 1 }, "`result` is an object with symbols for keys"],
    [
      "tag",
      Object.defineProperty({ at: 1n }, Symbol.toStringTag, { value: "Array" }),
      "`result` is an object with symbols for keys",
    ],
    ["array with more", Object.assign([1], { total: 9 }), "`result` is an array with properties of its own"],
    ["Map with more", { m: Object.assign(new Map(), { total: 9 }) }, "`result.m` is a Map with properties of its own"],
    ["in a Map", new Map([["secret", new Set([() => 0])]]), "`[...[...result][0][1]][0]` is a function"],
    ["toJSON", { toJSON: () => 1 }, "`result.toJSON` is a function"],
    ["cause", new Error("secret", { cause: new Client() }), "`result.cause` is an instance of Client"],
    [
      "getter that throws",
      {
        get a() {
          throw new Error("secret");
        },
      },
      "it could not be encoded",
    ],
    [
      "revoked proxy",
      (() => {
        const { proxy, revoke } = Proxy.revocable({}, {});
        revoke();
        return proxy;
      })(),
      "it could not be encoded",
    ],
  ])("%s", async (_, value, reason) => {
    expect(await why(value)).toBe(reason);
  });

  test("a value nested too deep for the stack", async () => {
    for (const bottom of [1, 1n]) {
      let deep: unknown = bottom;
      for (let level = 0; level < 100_000; level++) deep = [deep];
      expect(await why(deep)).toBe("it could not be encoded");
    }
  });

  test("the cap counts the bytes of the recorded text", async () => {
    const small = createCodec({ maxResultBytes: 10 });
    expect((await kept("é".repeat(4), small)).payload.text).toBe('"éééé"');
    expect(await why(`${"é".repeat(4)}x`, small)).toBe("its recorded form would take more than 10 bytes");
    const large = randomBytes(1024 * 1024).toString("base64");
    expect(await why(large)).toBe("its recorded form would take more than 1048576 bytes");
    // What compresses may be longer than the cap.
    expect((await kept("x".repeat(3 * 1024 * 1024))).value).toHaveLength(3 * 1024 * 1024);
  });
});

describe("compression", () => {
  test("begins at 16 KiB of UTF-8", async () => {
    expect((await kept("é".repeat(8 * 1024 - 2))).payload.format).toBe("json");
    const { payload, value } = await kept("é".repeat(8 * 1024 - 1));
    expect(payload.format).toBe("json+zstd");
    expect(payload.text).toMatch(/^[A-Za-z0-9+/]+=*$/);
    expect(payload.text.length).toBeLessThan(200);
    expect(value).toBe("é".repeat(8 * 1024 - 1));
    const rich = { at: new Date(0), text: "\ud800x".repeat(10_000) };
    const encoded = await kept(rich);
    expect(encoded.payload.format).toBe("rich/1+zstd");
    expect(encoded.value).toEqual(rich);
  });

  test("is left off where it would be longer", async () => {
    const noise = randomBytes(24 * 1024).toString("base64");
    expect((await kept(noise)).payload).toEqual({ format: "json", text: JSON.stringify(noise) });
  });
});

describe("types of others", () => {
  class Money {
    readonly cents: bigint;
    constructor(cents: bigint) {
      this.cents = cents;
    }
  }
  let asked = 0;
  const money: CodecType = {
    name: "shop/Money",
    test: (value) => value instanceof Money,
    reduce(value) {
      asked++;
      return (value as Money).cents;
    },
    revive: (form) => new Money(form as bigint),
  };
  const shop = createCodec({ types: [money] });

  test("come back as they were, falsy forms too, and are reduced once", async () => {
    asked = 0;
    const { payload, value } = await kept({ paid: new Money(5n), fee: new Money(0n) }, shop);
    expect(value).toStrictEqual({ paid: new Money(5n), fee: new Money(0n) });
    expect(payload.format).toBe("rich/1");
    expect(asked).toBe(2);
  });

  test("what they reduce to is looked at as well", async () => {
    const opaque = createCodec({ types: [{ ...money, reduce: () => ({ f: () => 0 }) }] });
    expect(await why([new Money(1n)], opaque)).toBe("`result[0].f` is a function");
    const broken = createCodec({
      types: [
        {
          ...money,
          revive: () => {
            throw new Error("secret");
          },
        },
      ],
    });
    expect(await why(new Money(1n), broken)).toBe("it could not be encoded");
  });

  test("cannot be read where they are missing", async () => {
    const { payload } = await kept(new Money(5n), shop);
    await expect(codec.decode(payload)).rejects.toMatchObject({ code: "EFFECT_RESULT_UNAVAILABLE" });
  });

  test.each(["Date", "", 'a/b"', "twiceproof/Error", "shop/"])("no name %j", (name) => {
    expect(() => createCodec({ types: [{ ...money, name }] })).toThrow(
      expect.objectContaining({ code: "INVALID_ARGUMENT" }),
    );
  });
});

describe("what cannot be read", () => {
  test.each([
    ["rich/2", "[1]"],
    ["json+brotli", "x"],
    ["", ""],
    ["json", '{"secret":'],
    ["rich/1", '[["other/Type",1],"secret"]'],
    ["json+zstd", "secret"],
  ])("%s %s", async (format, text) => {
    const error: unknown = await codec.decode({ format, text }).catch((thrown: unknown) => thrown);
    if (!isTwiceproofError(error)) throw error;
    expect(error.code).toBe("EFFECT_RESULT_UNAVAILABLE");
    expect(error.message).toBe(
      "It happened, and its result cannot be read here: a newer version or an adapter's type wrote it. Do not try it again.",
    );
    expect(error.help).toContain(`"${format}"`);
    expect(`${error.message}${error.help}${error.stack}${String(error.cause)}`).not.toContain("secret");
  });
});

describe("properties", () => {
  test("anything that is kept comes back as it was, as text that every store can keep", async () => {
    const anything = fc.anything({
      withBigInt: true,
      withDate: true,
      withMap: true,
      withSet: true,
      withNullPrototype: true,
      withTypedArray: true,
      withSparseArray: true,
      withUnicodeString: true,
    });
    const formats = new Set<string>();
    await fc.assert(
      fc.asyncProperty(anything, async (value) => {
        const encoded = await codec.encode(value);
        if (!encoded.kept) throw new Error(encoded.why);
        formats.add(encoded.payload.format);
        expect(encoded.value).toStrictEqual(value);
        expect(await codec.decode(encoded.payload)).toStrictEqual(value);
      }),
      { numRuns: 1_000 },
    );
    expect([...formats]).toEqual(expect.arrayContaining(["json", "rich/1", "void"]));
  });

  test("texts are well-formed and hold no NUL", async () => {
    const text = fc.string({ unit: fc.constantFrom("\0", "\ud800", "\udc00", "a", "é", "\u2028", "<", '"') });
    const wraps = [
      (a: string) => a,
      (a: string) => ({ [a]: [a] }),
      (a: string) => ({ [a]: [a, 1n] }),
      (a: string) => new Map([[a, new Set([a])]]),
      (a: string) => new Error(a, { cause: a }),
      (a: string) => Object.assign(new Error("x"), { code: a, name: a }),
      (a: string) => Object.assign(Object.create(null), { [a]: a }),
      (a: string) => new RegExp(a.replaceAll("", "a?")),
      (a: string) => [
        new URL(`https://example.com/?${encodeURIComponent(a.toWellFormed())}#${a}`),
        new URLSearchParams([[a, a]]),
      ],
      (a: string) => Object.defineProperty({ a: 1n }, "__proto__", { value: { [a]: a }, enumerable: true }),
    ];
    await fc.assert(
      fc.asyncProperty(text, fc.constantFrom(...wraps), async (a, wrap) => {
        const value = wrap(a);
        const { payload, value: copy } = await kept(value);
        expect(payload.text.isWellFormed()).toBe(true);
        expect(payload.text).not.toContain("\0");
        if (!(value instanceof Error)) expect(isDeepStrictEqual(copy, value)).toBe(true);
      }),
      { numRuns: 1_000 },
    );
  });
});

describe("an effect with types of its own", () => {
  class Money {
    readonly cents: number;
    constructor(cents: number) {
      this.cents = cents;
    }
  }
  const types: readonly CodecType[] = [
    {
      name: "shop/Money",
      test: (value) => value instanceof Money,
      reduce: (value) => (value as Money).cents,
      revive: (form) => new Money(form as number),
    },
  ];

  it("7: has them back in the first caller's result, in a replay, and from reconcile", async () => {
    const { tp, worker, advance } = world();
    const price = defineEffect({ name: "price", key: () => "price:1", types, run: () => ({ total: new Money(5) }) });
    for (const caller of [tp, worker()]) {
      const { total } = await caller.once(price, undefined);
      expect(total).toBeInstanceOf(Money);
      expect(total).toEqual(new Money(5));
    }
    expect(await tp.recorded(price, undefined)).toMatchObject({ state: "completed", result: { total: new Money(5) } });
    expect(await tp.recorded({ ...price, types: [] }, undefined)).toMatchObject({
      state: "unavailable",
      error: { code: "EFFECT_RESULT_UNAVAILABLE" },
    });
    const lost = { ...price, key: () => "price:2", reconcile: () => done({ total: new Money(7) }) };
    const failing = { ...lost, reconcile: undefined, run: () => Promise.reject(new Error("cut")) };
    await rejection(tp.once(failing, undefined));
    advance(30_001);
    expect(await tp.once(lost, undefined)).toEqual({ total: new Money(7) });
  });

  it("is refused when a name could be mistaken for another's", async () => {
    for (const name of ["Money", "twiceproof/Money"])
      expect(() => defineEffect({ name: "x", types: [{ ...(types[0] as CodecType), name }], run: () => 1 })).toThrow(
        /package\/Type/,
      );
  });
});
