import { findTwiceproofError } from "./errors.ts";

export { oneRequest } from "./one-request.ts";

const notExecutedBrand = Symbol.for("twiceproof.not-executed");
const refusedBrand = Symbol.for("twiceproof.refused");

/** It is recorded, and goes into messages: text, whatever plain JavaScript passes. */
function reason(why: unknown): string {
  return typeof why === "string" ? why.slice(0, 2_000).toWellFormed() : "no reason was given";
}

/** To be thrown by an effect's own body: it provably did not happen, and may be tried again. */
export class NotExecuted extends Error {
  override readonly name = "NotExecuted";
  readonly why: string;

  constructor(why: string) {
    super(reason(why));
    this.why = reason(why);
    Object.defineProperty(this, notExecutedBrand, { value: true });
  }
}

/** Refused for good: to be thrown by an effect's own body, and an answer of `reconcile` or of a person. */
export class Refused extends Error {
  override readonly name = "Refused";
  readonly answer = "refused";
  readonly why: string;

  constructor(why: string) {
    super(reason(why));
    this.why = reason(why);
    Object.defineProperty(this, refusedBrand, { value: true });
  }
}

/**
 * `throw notExecuted("…")`: the only way for a body to free its key. A fresh one each time: one that an inner effect
 * threw already proves nothing about the outer one, nor does one that reaches us as the `cause` of another error.
 */
export function notExecuted(why: string): NotExecuted {
  return new NotExecuted(why);
}

/** `throw refused("…")` in a body, or an answer: only a recorded `reopen` frees the key again. A fresh one each time. */
export function refused(why: string): Refused {
  return new Refused(why);
}

function isNotExecutedError(error: object): error is NotExecuted {
  return notExecutedBrand in error;
}

function isRefusedError(error: object): error is Refused {
  return refusedBrand in error;
}

/** What somebody other than the holder knows about an effect in doubt. */
export type Answer<Result = unknown> =
  | { readonly answer: "done"; readonly result: Result }
  | { readonly answer: "done-without-result" }
  | Refused
  | { readonly answer: "not-done"; readonly authoritative: boolean }
  | { readonly answer: "unknown" };

/** An answer that decides: what ends a doubt. */
export type Verdict<Result = unknown> = Exclude<Answer<Result>, { readonly answer: "unknown" }>;

/** It happened; later callers get this result. */
export function done<Result = undefined>(result?: Result): { readonly answer: "done"; readonly result: Result } {
  return Object.freeze({ answer: "done", result: result as Result });
}

/** It happened; later callers are told so, and that its result is unavailable. */
export function doneWithoutResult(): Answer & { readonly answer: "done-without-result" } {
  return Object.freeze({ answer: "done-without-result" });
}

/**
 * It was not found. `authoritative`: the look-up would have found it, had it happened, even a moment ago: no replica, no
 * search index, no list that lags. A reconcile hook's answer counts only then.
 */
export function notDone(options: { readonly authoritative?: boolean } = {}): Answer & { readonly answer: "not-done" } {
  return Object.freeze({ answer: "not-done", authoritative: options.authoritative === true });
}

/** Nothing was learned; the doubt stays. */
export function unknown(): Answer & { readonly answer: "unknown" } {
  return Object.freeze({ answer: "unknown" });
}

/** Recognises an answer by its exact shape, so that a look-up's raw response never passes for one. Undefined: it is none. */
export function answerOf(x: unknown): Answer | undefined {
  if (typeof x !== "object" || x === null) return undefined;
  if (isRefusedError(x)) return x;
  const { answer, result, authoritative } = x as { answer?: unknown; result?: unknown; authoritative?: unknown };
  const keys = Object.keys(x).sort().join();
  switch (answer) {
    case "done":
      return keys === "answer,result" ? { answer, result } : undefined;
    case "not-done":
      return keys === "answer,authoritative" && typeof authoritative === "boolean"
        ? { answer, authoritative }
        : undefined;
    case "done-without-result":
    case "unknown":
      return keys === "answer" ? { answer } : undefined;
  }
  return undefined;
}

/** Returned by a body where it was meant to be thrown: nobody has either for a result. */
export function isVerdictError(value: unknown): value is NotExecuted | Refused {
  try {
    return typeof value === "object" && value !== null && (isNotExecutedError(value) || isRefusedError(value));
  } catch {
    // A proxy whose traps throw is a result like another.
    return false;
  }
}

/** What an error that left an effect's body says about the effect. */
export type Classification =
  | { readonly state: "released"; readonly why: string }
  | { readonly state: "failed"; readonly why: string }
  | { readonly state: "in-doubt" };

/** Undefined, or a throw of its own, leaves the effect in doubt. */
export type Classify = (error: unknown) => Classification["state"] | undefined;

const inDoubt: Classification = Object.freeze({ state: "in-doubt" });
/** On `globalThis`, because bundles come twice. */
const spentKey = Symbol.for("twiceproof.spent/1");
const globals = globalThis as { [spentKey]?: WeakSet<object> };
globals[spentKey] ??= new WeakSet();
const spent = globals[spentKey];

/** An effect that ended with this error calls it: from here on the error proves nothing about any other effect (promise 19). */
export function spend(error: unknown): void {
  if (typeof error === "object" && error !== null) spent.add(error);
}

/** Never throws. `why` is the author's own text, or a fixed one: the error's message may hold input or addresses. */
export function classifyThrow(error: unknown, classify?: Classify): Classification {
  try {
    if (findTwiceproofError(error) || isSpent(error, new Set())) return inDoubt;
    if (typeof error === "object" && error !== null) {
      if (isNotExecutedError(error)) return { state: "released", why: error.why };
      if (isRefusedError(error)) return { state: "failed", why: error.why };
    }
    return outcome(classify?.(error));
  } catch {
    // A `classify` that throws, or an error whose properties do.
    return inDoubt;
  }
}

function outcome(state: unknown): Classification {
  if (state === "released") return { state, why: "It was not sent." };
  if (state === "failed") return { state, why: "The outside system refused it." };
  // An async `classify` is nonsense too; its rejection must not end the process.
  if (state instanceof Promise) state.catch(() => {});
  return inDoubt;
}

/** An inner effect's error may come wrapped, or among others. */
function isSpent(error: unknown, seen: Set<object>): boolean {
  if (typeof error !== "object" || error === null || seen.has(error)) return false;
  seen.add(error);
  if (spent.has(error) || ("cause" in error && isSpent(error.cause, seen))) return true;
  return "errors" in error && Array.isArray(error.errors) && error.errors.some((member) => isSpent(member, seen));
}
