import { runInNewContext } from "node:vm";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { canonical } from "../src/canonical.ts";

function refusal(input: unknown): TypeError & { code?: unknown } {
  try {
    canonical(input);
  } catch (error) {
    return error as TypeError;
  }
  throw new Error("it was not refused");
}

describe("form", () => {
  test.each<[unknown, string]>([
    ["a", '"a"'],
    ["\0\n\u2028é𝄞", '"\\u0000\\n\u2028é𝄞"'],
    ["\ud800", '"\\ud800"'],
    ["\udc00", '"\\udc00"'],
    [0, "0"],
    [-0, "0"],
    [1e21, "1e+21"],
    [0.1, "0.1"],
    [Number.NaN, "!nan"],
    [Number.POSITIVE_INFINITY, "!inf"],
    [Number.NEGATIVE_INFINITY, "!-inf"],
    [12n, '!bigint"12"'],
    [undefined, "!undefined"],
    [null, "null"],
    [true, "true"],
    [[], "[]"],
    [[1, [undefined]], "[1,[!undefined]]"],
    [{}, "{}"],
    [Object.create(null), "{}"],
    [{ b: 1, a: 2, A: 3, "10": 4, "9": 5 }, '{"10":4,"9":5,"A":3,"a":2,"b":1}'],
    // By code units, not by code points: U+FF61 comes after the surrogates of U+1F600.
    [{ "\uff61": 1, "\u{1f600}": 2 }, '{"\u{1f600}":2,"\uff61":1}'],
    [JSON.parse('{"__proto__":1}'), '{"__proto__":1}'],
    [new Date(0), '!date"1970-01-01T00:00:00.000Z"'],
    [
      new Map<unknown, unknown>([
        ["b", 1],
        ["a", { x: 1 }],
        [1, 2],
      ]),
      '!map[["a",{"x":1}],["b",1],[1,2]]',
    ],
    [new Set(["b", "a", 1]), '!set["a","b",1]'],
    [new Uint8Array([1, 2, 3]), '!bytes"AQID"'],
    [Buffer.from([1, 2, 3]), '!bytes"AQID"'],
    [new Uint8Array([1, 2, 3]).buffer, '!bytes"AQID"'],
    [new Uint8Array([0, 1, 2, 3, 4]).subarray(1, 4), '!bytes"AQID"'],
    [new URL("https://example.com/a?b#c"), '!url"https://example.com/a?b#c"'],
  ])("%o", (input, text) => {
    expect(canonical(input)).toBe(text);
  });

  test("texts that look like another kind's form stay texts", () => {
    for (const text of ["!nan", '!bigint"12"', "null", "{}"]) expect(canonical(text)).toBe(JSON.stringify(text));
    expect(canonical({ $date: 1 })).not.toBe(canonical(new Date(1)));
  });

  test("an undefined property is not a missing one", () => {
    expect(canonical({ a: undefined })).not.toBe(canonical({}));
    expect(canonical([undefined])).not.toBe(canonical([null]));
  });

  test("values of another realm have the same form", () => {
    const make =
      "({ o: { a: [1, { b: 2 }] }, d: new Date(0), m: new Map([[1, 2]]), s: new Set([1]), u: new Uint8Array([1]), b: new ArrayBuffer(1) })";
    const here: unknown = runInNewContext(make);
    expect(canonical(here)).toBe(
      '{"b":!bytes"AA==","d":!date"1970-01-01T00:00:00.000Z","m":!map[[1,2]],"o":{"a":[1,{"b":2}]},"s":!set[1],"u":!bytes"AQ=="}',
    );
  });

  test("a shared reference is written out each time", () => {
    const shared = { a: 1 };
    expect(canonical([shared, shared])).toBe('[{"a":1},{"a":1}]');
  });

  test("500 levels are fine", () => {
    let deep: unknown = 1;
    for (let level = 0; level < 500; level++) deep = [deep];
    expect(canonical(deep)).toBe(`${"[".repeat(500)}1${"]".repeat(500)}`);
    expect(refusal([deep]).message).toMatch(/^`input(\[0\]){3,}…` is nested more than 500 levels deep; /);
  });
});

describe("refusals", () => {
  class Money {
    cents = 1;
  }
  class MyMap extends Map {}
  const self: Record<string, unknown> = {};
  self.me = [self];
  const extra = Object.assign([1], { note: "secret" });
  const detached = new ArrayBuffer(8);
  structuredClone(detached, { transfer: [detached] });

  test.each<[string, unknown, string]>([
    ["function", { f: () => 1 }, "`input.f` is a function; leave it out."],
    ["symbol", [Symbol("secret")], "`input[0]` is a symbol; pass a string."],
    ["symbol key", { [Symbol("secret")]: 1 }, "`input` has a property whose key is a symbol; use string keys."],
    [
      "getter",
      {
        get a() {
          return 1;
        },
      },
      "`input.a` is a getter; pass its value.",
    ],
    ["hidden", Object.defineProperty({}, "a", { value: 1 }), "`input.a` is not enumerable; pass an ordinary property."],
    [
      "class",
      { a: { "b-c": new Money() } },
      '`input.a["b-c"]` is an instance of Money; pass its data as a plain object.',
    ],
    ["unnamed", new (class {})(), "`input` is an instance of an unnamed class; pass its data as a plain object."],
    ["subclass", new MyMap(), "`input` is an instance of MyMap; pass its data as a plain object."],
    ["boxed", [new String("secret")], "`input[0]` is a boxed primitive; pass the primitive."],
    ["Error", new RangeError("secret"), "`input` is an Error; pass its message."],
    ["RegExp", /secret/, "`input` is a RegExp; pass its source and flags."],
    ["Promise", Promise.resolve("secret"), "`input` is a Promise; await it first."],
    ["Float64Array", new Float64Array(1), "`input` is a Float64Array; pass a Uint8Array, or an array of numbers."],
    [
      "Uint8ClampedArray",
      new Uint8ClampedArray(1),
      "`input` is a Uint8ClampedArray; pass a Uint8Array, or an array of numbers.",
    ],
    ["DataView", new DataView(new ArrayBuffer(1)), "`input` is a DataView; pass a Uint8Array, or an array of numbers."],
    ["shared", new SharedArrayBuffer(1), "`input` is memory shared between threads; pass a copy of the bytes."],
    [
      "shared view",
      new Uint8Array(new SharedArrayBuffer(1)),
      "`input` is memory shared between threads; pass a copy of the bytes.",
    ],
    ["detached", detached, "`input` is a detached ArrayBuffer; pass the bytes before they are transferred."],
    ["WeakMap", new WeakMap(), "`input` is an instance of WeakMap; pass its data as a plain object."],
    ["URLSearchParams", new URLSearchParams("a=secret"), "`input` is a URLSearchParams; pass its toString()."],
    [
      "invalid Date",
      { items: [{}, { when: new Date(Number.NaN) }] },
      "`input.items[1].when` is an invalid Date; pass a valid one, or null.",
    ],
    [
      "hole",
      Object.assign(new Array(3), { 0: 1, 2: 3 }),
      "`input[1]` is a hole in an array; pass null or undefined there.",
    ],
    ["extra", extra, "`input` is an array with properties of its own; pass a plain object."],
    [
      "sparse and extra",
      Object.assign(new Array(2), { note: 1 }),
      "`input[0]` is a hole in an array; pass null or undefined there.",
    ],
    [
      "Date with extra",
      Object.assign(new Date(0), { zone: "secret" }),
      "`input` is a Date with properties of its own; pass them beside it.",
    ],
    [
      "Map with extra",
      Object.assign(new Map(), { a: 1 }),
      "`input` is a Map with properties of its own; pass them beside it.",
    ],
    ["cycle", self, "`input.me[0]` contains itself; pass a tree."],
    ["in a Map's key", new Map([[{ f() {} }, 1]]), "`[...input][0][0].f` is a function; leave it out."],
    ["in a Map's value", { m: new Map([["secret", Symbol()]]) }, "`[...input.m][0][1]` is a symbol; pass a string."],
    ["in a Set", new Set([1, () => 1]), "`[...input][1]` is a function; leave it out."],
  ])("%s", (_, input, message) => {
    const error = refusal(input);
    expect(error).toBeInstanceOf(TypeError);
    expect(Object.hasOwn(error, "code") && error.code).toBe("INVALID_INPUT");
    expect(error.message).toBe(message);
  });

  test("references shared over and over end in a refusal, not in a process that hangs", () => {
    let many: unknown = "x".repeat(100_000);
    for (let level = 0; level < 40; level++) many = [many, many];
    expect(refusal(many).message).toContain("makes the input larger than 64 MiB");
  });
});

describe("properties", () => {
  // Few leaves, so that equal and nearly equal values are met often.
  const leaf = fc.oneof(
    fc.constantFrom<unknown>(
      "",
      "a",
      "b",
      "1",
      "null",
      "!nan",
      ",",
      '","',
      "\ud800",
      "\udc00",
      1,
      0,
      -1,
      Number.NaN,
      1n,
      -1n,
    ),
    fc.constantFrom<unknown>(null, undefined, true, false, Number.POSITIVE_INFINITY),
    fc.constantFrom(0, 1).map((ms) => new Date(ms)),
    fc.uint8Array({ maxLength: 2, max: 2 }).map((bytes) => Uint8Array.from(bytes)),
  );
  const { value } = fc.letrec<{ value: unknown }>((tie) => ({
    value: fc.oneof(
      { depthSize: "small" },
      leaf,
      fc.array(tie("value"), { maxLength: 3 }),
      fc.dictionary(fc.constantFrom("a", "b", "__proto__", '"', ","), tie("value"), {
        maxKeys: 3,
        noNullPrototype: true,
      }),
      fc.array(fc.tuple(tie("value"), tie("value")), { maxLength: 2 }).map((entries) => new Map(entries)),
      fc.array(tie("value"), { maxLength: 3 }).map((members) => new Set(members)),
    ),
  }));

  test("equal texts exactly for equal values", () => {
    let equal = 0;
    fc.assert(
      fc.property(value, value, (a, b) => {
        const same = alike(a, b);
        if (same) equal++;
        return (canonical(a) === canonical(b)) === same;
      }),
      { numRuns: 5_000 },
    );
    expect(equal).toBeGreaterThan(20);
  });

  test("no order counts but that of arrays", () => {
    fc.assert(
      fc.property(value, (a) => canonical(reversed(a)) === canonical(a)),
      { numRuns: 1_000 },
    );
  });

  test("what went through JSON is the same call", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (a) => canonical(JSON.parse(JSON.stringify(a))) === canonical(a)),
      { numRuns: 1_000 },
    );
  });

  test("texts are well-formed and without NUL, and never meet", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), fc.string({ unit: "binary" }), (a, b) => {
        const text = canonical(a);
        return text.isWellFormed() && !text.includes("\0") && (text === canonical(b)) === (a === b);
      }),
    );
  });

  /** Equality by another road. Node 22's `isDeepStrictEqual` throws on Sets that hold null beside objects. */
  function alike(a: unknown, b: unknown): boolean {
    if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return Object.is(a, b);
    if (Object.getPrototypeOf(a) !== Object.getPrototypeOf(b)) return false;
    if (a instanceof Date) return a.getTime() === (b as Date).getTime();
    if (a instanceof Map) return pairUp([...a], [...(b as Map<unknown, unknown>)]);
    if (a instanceof Set) return pairUp([...a], [...(b as Set<unknown>)]);
    const keys = Object.keys(a);
    return (
      keys.length === Object.keys(b).length &&
      keys.every((key) => Object.hasOwn(b, key) && alike(a[key as keyof typeof a], b[key as keyof typeof b]))
    );
  }

  function pairUp(as: unknown[], bs: unknown[]): boolean {
    const [first, ...rest] = as;
    if (as.length !== bs.length || as.length === 0) return as.length === bs.length;
    const at = bs.findIndex((b) => alike(first, b));
    return at >= 0 && pairUp(rest, bs.toSpliced(at, 1));
  }

  function reversed(a: unknown): unknown {
    if (Array.isArray(a)) return a.map(reversed);
    if (a instanceof Map) return new Map([...a].reverse().map(([k, v]) => [reversed(k), reversed(v)]));
    if (a instanceof Set) return new Set([...a].reverse().map(reversed));
    if (a === null || typeof a !== "object" || Object.getPrototypeOf(a) !== Object.prototype) return a;
    return Object.fromEntries(
      Object.entries(a)
        .reverse()
        .map(([k, v]) => [k, reversed(v)]),
    );
  }
});
