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
import { isDoubtInterrupt } from "./doubt-interrupt.ts";

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
 * The command that settles doubts and lets the graph go on: `graph.invoke(doubtResume(interrupt, done(receipt), { who,
 * why }), config)`. Takes one interrupt, or the list of `__interrupt__`, whose doubts all get the same verdict; other
 * interrupts stay open.
 *
 * @throws TwiceproofError `INVALID_ARGUMENT`
 */
export function doubtResume(
  interrupts: InterruptLike | readonly InterruptLike[],
  verdict: Verdict,
  by: DecidedBy,
): Command {
  const list = Array.isArray(interrupts) ? (interrupts as readonly InterruptLike[]) : [interrupts as InterruptLike];
  const doubts = list.filter(({ value }) => isDoubtInterrupt(value));
  if (doubts.length === 0) throw invalid("`doubtResume` was given no interrupt that stands for a doubt");
  checkOptions("a verdict", by, decidedNames);
  const written = { ...by, verdict: write(verdict) };
  if (readWire(written) === undefined)
    throw invalid(
      "A verdict is one of done(result), doneWithoutResult(), notDone() and refused(why), with `who` and `why`",
    );
  const resume: Record<string, unknown> = {};
  for (const { id = "", value } of doubts)
    resume[id] = { ...(resume[id] as object | undefined), [(value as { id: string }).id]: written };
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
  const { verdict, who, why, evidence } = (wire ?? {}) as Partial<Wire>;
  const read = readVerdict(verdict);
  if (read === undefined || !isText(who) || !isText(why)) return undefined;
  return { verdict: read, who, why, ...(isText(evidence) && { evidence }) };
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
