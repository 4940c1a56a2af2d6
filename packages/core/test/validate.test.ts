import { describe, expect, test } from "vitest";
import { isTwiceproofError } from "../src/errors.ts";
import {
  checkDuration,
  checkKey,
  checkLeaseMs,
  checkName,
  checkNamespace,
  checkScope,
  checkWaitMs,
} from "../src/validate.ts";

function messageOf(check: () => void): string | null {
  try {
    check();
    return null;
  } catch (error) {
    if (!isTwiceproofError(error) || error.code !== "INVALID_ARGUMENT") throw error;
    return error.message;
  }
}

const checks: Record<string, (value: unknown) => void> = {
  checkKey,
  checkName,
  checkNamespace,
  checkLeaseMs,
  checkWaitMs,
};

describe("texts", () => {
  const empty = "must be a string that is not empty.";
  const halved = "must be well-formed Unicode: it has half of a surrogate pair.";
  test.each<[string, unknown, string | null]>([
    ["checkKey", "order:1", null],
    ["checkKey", " trailing ", null],
    ["checkKey", "line\nbreak", null],
    ["checkKey", "x".repeat(512), null],
    ["checkKey", "é".repeat(256), null],
    ["checkKey", "", `\`key\` ${empty}`],
    ["checkKey", 7, `\`key\` ${empty}`],
    ["checkKey", undefined, `\`key\` ${empty}`],
    ["checkKey", new String("a"), `\`key\` ${empty}`],
    ["checkKey", "secret\ud800", `\`key\` ${halved}`],
    ["checkKey", "secret\0", "`key` must not contain a NUL character."],
    ["checkKey", "x".repeat(513), "`key` must not be longer than 512 bytes of UTF-8."],
    ["checkKey", "é".repeat(257), "`key` must not be longer than 512 bytes of UTF-8."],
    ["checkName", "charge", null],
    ["checkName", "Überweisung ausführen", null],
    ["checkName", "x".repeat(128), null],
    ["checkName", "", `\`name\` ${empty}`],
    ["checkName", "x".repeat(129), "`name` must not be longer than 128 bytes of UTF-8."],
    ["checkName", "a\udc00", `\`name\` ${halved}`],
    ["checkName", "a\nb", "`name` must not contain control characters."],
    ["checkName", "a\0", "`name` must not contain control characters."],
    ["checkName", "a\u0085", "`name` must not contain control characters."],
    ["checkName", "a\u2028", "`name` must not contain control characters."],
    ["checkNamespace", "prod", null],
    ["checkNamespace", null, `\`namespace\` ${empty}`],
    ["checkNamespace", "a\u001b[31m", "`namespace` must not contain control characters."],
  ])("%s %j", (check, value, message) => {
    expect(messageOf(() => checks[check]?.(value))).toBe(message);
  });

  test("the label of a scope is named", () => {
    expect(messageOf(() => checkScope("turn", "t-1"))).toBeNull();
    expect(messageOf(() => checkScope("turn", ""))).toBe(`\`turn\` ${empty}`);
  });
});

describe("durations", () => {
  test.each([1_000, 30_000, 86_400_000])("a lease of %d", (ms) => {
    expect(messageOf(() => checkLeaseMs(ms))).toBeNull();
  });

  test.each([0, -1, 999, 1_000.5, 86_400_001, Number.NaN, Number.POSITIVE_INFINITY, "30000", 30_000n, null, undefined])(
    "no lease of %s",
    (ms) => {
      expect(messageOf(() => checkLeaseMs(ms))).toBe(
        "`leaseMs` must be a whole number of milliseconds from 1000 to 86400000.",
      );
    },
  );

  test("a wait may be zero, and no longer than a timer can wait", () => {
    expect(messageOf(() => checkWaitMs(0))).toBeNull();
    expect(messageOf(() => checkWaitMs(2_147_483_647))).toBeNull();
    const rule = "`waitMs` must be a whole number of milliseconds from 0 to 2147483647.";
    for (const ms of [-1, 2_147_483_648, Number.NaN, "0"]) expect(messageOf(() => checkWaitMs(ms))).toBe(rule);
  });

  test("any duration, with bounds of its own", () => {
    expect(messageOf(() => checkDuration("graceMs", 5, 5, 5))).toBeNull();
    expect(messageOf(() => checkDuration("graceMs", 6, 5, 5))).toBe(
      "`graceMs` must be a whole number of milliseconds from 5 to 5.",
    );
  });
});
