import fc from "fast-check";
import { expect, test } from "vitest";
import { fingerprint, lockFingerprint } from "../src/fingerprint.ts";

/**
 * Computed by another program, from the canonical texts that canonical.test.ts states, as SHA-256 over both parts, each
 * behind its length in four bytes. A change here makes recorded effects look like other inputs: it needs a new form version.
 */
test.each<[string, unknown, string]>([
  ["charge", { orderId: "o-1", cents: 1200 }, "f498be43f92525419df6ee4ad635b8c234425d435dcafc1ac0beef4633ee0e35"],
  ["refund", { orderId: "o-1", cents: 1200 }, "f30f33b42b68164aa996a547bf05c4b0b45a083e22cffb45a4ed9159c1f73cb8"],
  ["charge", undefined, "d8c536a89bb1346e43a908c96c4baa936444e3a3d815a19778eca5450e50f6a0"],
  ["charge", null, "76793f476adbe651788ea7c7e0fe214fb3592d92068d010a4efd4596cf79ef2d"],
  ["charge", {}, "0b6fef36c3dac5104c97b7357da41b50e9f31e7f517d705ae5d58c212a7cde63"],
  ["charge", { a: undefined }, "e7fb682bdb404016069e74ad3fc25b9e2f9660d09a1cecf5183259737810ee79"],
  [
    "charge",
    [1, -0, 0.1, 1e21, Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY],
    "d0fc9738556e5954e66e8825426042c413ba1f879932215e70e7a3f3d9ce0ae6",
  ],
  ["charge", 9_007_199_254_740_993n, "bc4373fc721e53ca125b2a75459c3b2241a6292fb51019b540a354f94f646255"],
  ["charge", new Date("2026-01-02T03:04:05.006Z"), "12e1e9dae6a9d52a1e430d6b0ac2762c7b40c156371841aed3082f1833c098a0"],
  [
    "charge",
    new Map<string, unknown>([
      ["b", new Set([2, 1])],
      ["a", 1],
    ]),
    "e54e1c653fa560a49939989f9c3c108dd4d91fc5fb67e8d312b41aaca9e4d764",
  ],
  ["charge", Buffer.from([0, 1, 255]), "f6ac6ac55523183c14103c14bfd55912f9c1e84afe2416df16472553d162d875"],
  ["charge", new URL("https://example.com/?a=1"), "51b07a178e97c373557f773b872e003ba7bf5098a0216bd614c01741cc858df3"],
  ["charge", "\ud800é\0𝄞", "38f824119ac7ffca21383dd34c3f6dfa735648b5324b70d225d9fe6645a32183"],
  [
    "envoyer-é",
    JSON.parse('{"__proto__":[{"9":false,"10":true}]}'),
    "5f5d786bc5bca09f9d688905cb33c67dd609284a2f1534cc9b3afee59df39670",
  ],
])("%s %o", (name, input, hash) => {
  expect(fingerprint(name, input)).toBe(`1:${hash}`);
});

test("name and input do not run into each other", () => {
  fc.assert(
    fc.property(fc.string(), fc.string(), fc.string(), (a, b, c) => {
      if (b !== "") expect(fingerprint(a + b, c)).not.toBe(fingerprint(a, b + c));
    }),
  );
});

test("the order of keys does not count", () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (input) => {
      const other = Object.fromEntries(Object.entries(input).reverse());
      expect(fingerprint("charge", other)).toBe(fingerprint("charge", input));
    }),
  );
});

test("a lock's stands apart", () => {
  expect(lockFingerprint).toBe("lock");
  expect(fingerprint("lock", undefined)).toMatch(/^1:[0-9a-f]{64}$/);
});
