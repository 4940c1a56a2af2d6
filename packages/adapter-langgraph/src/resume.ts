import { Command } from "@langchain/langgraph";
import {
  type DecidedBy,
  done,
  doneWithoutResult,
  notDone,
  refused,
  TwiceproofError,
  type Verdict,
} from "@twiceproof/core";
import { checkOptions } from "@twiceproof/core/adapter";
import { type DoubtInterrupt, isDoubtInterrupt } from "./doubt-interrupt.ts";

/** A verdict and who gave it, as they arrive by a resume. */
export interface ResumedVerdict extends DecidedBy {
  readonly verdict: Verdict;
}

/** As plain JSON: a resume may come over HTTP, and lies in the checkpoint. */
interface Wire extends Omit<ResumedVerdict, "verdict"> {
  readonly verdict: { readonly answer: string; readonly result?: unknown; readonly why?: string };
}

const decidedNames: Record<keyof DecidedBy, true> = { who: true, why: true, evidence: true, decisionId: true };

/**
 * The command that settles doubts and lets the graph go on: `graph.invoke(doubtResume(interrupts, done(receipt), { who,
 * why }), config)`. Takes the list of `__interrupt__`, or one of it; `verdict` may be a function of the doubt, and
 * undefined for those that stay open, as other interrupts do.
 *
 * @throws TwiceproofError `INVALID_ARGUMENT`
 */
export function doubtResume(
  interrupts: InterruptLike | readonly InterruptLike[],
  verdict: Verdict | ((doubt: DoubtInterrupt) => Verdict | undefined),
  by: DecidedBy,
): Command {
  checkOptions("a verdict", by ?? {}, decidedNames);
  const resume: Record<string, Record<string, unknown>> = {};
  for (const { id = "", value } of [interrupts].flat()) {
    const decided = isDoubtInterrupt(value) ? (typeof verdict === "function" ? verdict(value) : verdict) : undefined;
    if (decided === undefined) continue;
    const wire = { ...by, verdict: write(decided) };
    if (readWire(wire) === undefined) throw invalid("A verdict needs `who` and `why`: they are kept in the history");
    resume[id] = { ...resume[id], [(value as DoubtInterrupt).id]: wire };
  }
  if (Object.keys(resume).length === 0) throw invalid("`doubtResume` found no doubt to settle among these interrupts");
  return new Command({ resume });
}

/** An interrupt, as graphs return them. */
interface InterruptLike {
  readonly id?: string | undefined;
  readonly value?: unknown;
}

function write(verdict: Verdict): Wire["verdict"] {
  switch (verdict?.answer) {
    case "refused":
      return { answer: "refused", why: verdict.why };
    case "done":
      return { answer: "done", result: verdict.result };
    case "done-without-result":
    case "not-done":
      return { answer: verdict.answer };
  }
  throw invalid("A verdict is one of done(result), doneWithoutResult(), notDone() and refused(why)");
}

/** The verdicts in a resume value: `{ [id]: { verdict, who, why } }`, or one as `{ id, verdict, who, why }`. Others have none. */
export function verdictsIn(value: unknown): readonly (readonly [string, ResumedVerdict])[] {
  if (!isObject(value)) return [];
  const entries: [string, unknown][] = typeof value.id === "string" ? [[value.id, value]] : Object.entries(value);
  const found = entries.map(([each, wire]) => [each, isId(each) ? readWire(wire) : undefined] as const);
  const verdicts = found.filter((entry): entry is readonly [string, ResumedVerdict] => entry[1] !== undefined);
  // A value that holds anything else is not ours alone.
  return verdicts.length === entries.length ? verdicts : [];
}

/**
 * The verdicts that a resume holds, and whether they are all it holds: then it answers no question of a tool's own.
 *
 * @throws TwiceproofError `INVALID_ARGUMENT` when something in it was meant as a verdict and is none: it would be taken for
 * the answer to such a question
 */
export function readResume(resume: unknown): {
  verdicts: readonly (readonly [string, ResumedVerdict])[];
  isAll: boolean;
} {
  const bare = verdictsIn(resume);
  if (bare.length > 0 || !isObject(resume)) return { verdicts: bare, isAll: bare.length > 0 };
  const verdicts = Object.entries(resume).flatMap(([key, value]) => {
    const addressed = verdictsIn(value);
    if (addressed.length === 0 && (isMeant(value, key) || isMeantWithin(value))) throw malformed();
    return addressed;
  });
  if (isMeant(resume)) throw malformed();
  return { verdicts, isAll: false };
}

function isMeantWithin(value: unknown): boolean {
  return isObject(value) && Object.entries(value).some(([key, each]) => isMeant(each, key));
}

function isMeant(value: unknown, key?: string): boolean {
  if (!isObject(value) || !("verdict" in value)) return false;
  return isId(key ?? value.id) || isId(value.id) || (isObject(value.verdict) && "answer" in value.verdict);
}

function malformed(): TwiceproofError {
  return invalid(
    "A resume holds what looks like a verdict and is none: it is `{ verdict, who, why }` under the doubt's whole id, and nothing else beside it",
  );
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}

function isId(id: unknown): boolean {
  return typeof id === "string" && /^[0-9a-f]{64}$/.test(id);
}

function readWire(wire: unknown): ResumedVerdict | undefined {
  const { verdict, who, why, evidence, decisionId } = (wire ?? {}) as Partial<Wire>;
  const read = readVerdict(verdict);
  if (read === undefined || !isText(who) || !isText(why)) return undefined;
  return { verdict: read, who, why, ...(isText(evidence) && { evidence }), ...(isText(decisionId) && { decisionId }) };
}

function isText(text: unknown): text is string {
  return typeof text === "string" && text.trim() !== "";
}

function readVerdict(verdict: Wire["verdict"] | undefined): Verdict | undefined {
  switch (verdict?.answer) {
    case "done":
      return done(verdict.result);
    case "done-without-result":
      return doneWithoutResult() as Verdict;
    case "not-done":
      return notDone();
    case "refused":
      return refused(String(verdict.why));
  }
  return undefined;
}

export function invalid(rule: string): TwiceproofError {
  return new TwiceproofError("INVALID_ARGUMENT", `${rule}.`);
}
