import { TwiceproofError } from "./errors.ts";

const maxTextBytes = 512;
const maxNameBytes = 128;
const maxNoteBytes = 64 * 1024;
const minLeaseMs = 1_000;
const maxLeaseMs = 24 * 60 * 60 * 1_000;
/** The longest that a Node timer can wait. A longer one fires at once. */
const maxTimerMs = 2 ** 31 - 1;

/**
 * Every check throws `INVALID_ARGUMENT` before anything is claimed. The message names the argument and the rule, and
 * never the value.
 */
export function checkKey(key: unknown): asserts key is string {
  checkScope("key", key);
}

/** For scopes, turns, run ids and threads: text that every store compares as bytes. */
export function checkScope(label: string, text: unknown): asserts text is string {
  checkText(label, text, maxTextBytes);
  if (text.includes("\0")) refuse(label, "must not contain a NUL character");
}

export function checkName(name: unknown): asserts name is string {
  checkLine("name", name);
}

export function checkNamespace(namespace: unknown): asserts namespace is string {
  checkLine("namespace", namespace);
}

/** Below a second a lease lapses between two heartbeats; over a day a crash would go unnoticed. */
export function checkLeaseMs(leaseMs: unknown): asserts leaseMs is number {
  checkDuration("leaseMs", leaseMs, minLeaseMs, maxLeaseMs);
}

export function checkWaitMs(waitMs: unknown): asserts waitMs is number {
  checkDuration("waitMs", waitMs);
}

export function checkDuration(
  label: string,
  durationMs: unknown,
  minMs = 0,
  maxMs: number = maxTimerMs,
): asserts durationMs is number {
  if (!Number.isInteger(durationMs) || (durationMs as number) < minMs || (durationMs as number) > maxMs)
    refuse(label, `must be a whole number of milliseconds from ${minMs} to ${maxMs}`);
}

/** A claim's id, as in `doubts.list()`. Unchecked, a store would fail on it, and be asked again and again. */
export function checkId(id: unknown): asserts id is string {
  if (typeof id !== "string" || !/^[0-9a-f]{64}$/.test(id)) refuse("id", "must be 64 lower-case hex digits");
}

export function checkCount(label: string, count: unknown): asserts count is number {
  if (!Number.isSafeInteger(count) || (count as number) < 1) refuse(label, "must be a whole number from 1");
}

/** What people write into the history. */
export function checkNote(label: string, text: unknown): asserts text is string {
  checkText(label, text, maxNoteBytes);
  if (text.includes("\0")) refuse(label, "must not contain a NUL character");
}

/** Names stand in lists, logs and messages: one line each. */
function checkLine(label: string, text: unknown): asserts text is string {
  checkText(label, text, maxNameBytes);
  if (/[\p{Cc}\u2028\u2029]/u.test(text)) refuse(label, "must not contain control characters");
}

function checkText(label: string, text: unknown, maxBytes: number): asserts text is string {
  if (typeof text !== "string" || text === "") refuse(label, "must be a string that is not empty");
  if (!text.isWellFormed()) refuse(label, "must be well-formed Unicode: it has half of a surrogate pair");
  if (Buffer.byteLength(text, "utf8") > maxBytes) refuse(label, `must not be longer than ${maxBytes} bytes of UTF-8`);
}

function refuse(label: string, rule: string): never {
  throw new TwiceproofError("INVALID_ARGUMENT", `\`${label}\` ${rule}.`);
}

export function checkBody(what: string, body: unknown): void {
  if (typeof body !== "function") refuse(what, "needs a function as its second argument");
}

/** A misspelt name would otherwise be a rule that silently does not hold. */
export function checkOptions(what: string, options: object, names: Readonly<Record<string, true>>): void {
  const stranger = Object.keys(options).find((name) => !Object.hasOwn(names, name));
  if (stranger !== undefined) refuse(stranger, `is no option of ${what}: it takes ${Object.keys(names).join(", ")}`);
}
