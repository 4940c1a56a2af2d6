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
  if (typeof value !== "object" || value === null) return [];
  const { id } = value as { id?: unknown };
  const entries: [string, unknown][] = typeof id === "string" ? [[id, value]] : Object.entries(value);
  const found = entries.map(([each, wire]) => [each, isId(each) ? readWire(wire) : undefined] as const);
  const verdicts = found.filter((entry): entry is readonly [string, ResumedVerdict] => entry[1] !== undefined);
  // A value that holds anything else is not ours alone.
  return verdicts.length === entries.length ? verdicts : [];
}

function isId(id: string): boolean {
  return /^[0-9a-f]{64}$/.test(id);
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

function invalid(rule: string): TwiceproofError {
  return new TwiceproofError("INVALID_ARGUMENT", `${rule}.`);
}
