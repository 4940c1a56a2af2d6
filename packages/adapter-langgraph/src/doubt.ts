import { interrupt, isCommand } from "@langchain/langgraph";
import { type Doubt, isTwiceproofError, type Twiceproof, type TwiceproofError } from "@twiceproof/core";
import { shortRef } from "@twiceproof/core/adapter";
import type { ToolConfig } from "./config.ts";
import type { DoubtInterrupt } from "./doubt-interrupt.ts";
import { invalid, type ResumedVerdict, readResume, verdictsIn } from "./resume.ts";

/**
 * Leaves by an interrupt of LangGraph's own, the only way out that tool nodes respect. Its counter of interrupts is put
 * back, and values that answer a tool's own `interrupt()` are not touched: neither shifts the other's answers.
 */
export function leave(error: TwiceproofError, tool: string, config: ToolConfig): never {
  const payload: DoubtInterrupt = {
    type: "twiceproof/in-doubt",
    id: error.id ?? "",
    ref: error.ref ?? "",
    tool,
    message: error.message,
  };
  const pad = config.configurable?.__pregel_scratchpad;
  if (pad === undefined) throw error;
  const { interruptCounter, nullResume } = pad;
  // The index behind all answers there are: it takes none.
  pad.interruptCounter = pad.resume.length - 1;
  delete pad.nullResume;
  try {
    interrupt(payload);
  } finally {
    pad.interruptCounter = interruptCounter;
    if (nullResume !== undefined) pad.nullResume = nullResume;
  }
  throw error;
}

/** One for each task: several tools may run in it. */
const taken = new WeakMap<object, Map<string, ResumedVerdict>>();

/**
 * Takes the verdicts of a resume out of the values that LangGraph holds ready for `interrupt()`, so that none of them
 * answers a question of the tool's own. To be called before the tool's body is.
 */
export function takeVerdicts(config: ToolConfig): ReadonlyMap<string, ResumedVerdict> {
  const pad = config.configurable?.__pregel_scratchpad;
  if (pad === undefined) return new Map();
  const verdicts = taken.get(pad) ?? new Map<string, ResumedVerdict>();
  taken.set(pad, verdicts);
  const keep = (value: unknown): boolean => {
    const found = verdictsIn(value);
    for (const [id, verdict] of found) verdicts.set(id, verdict);
    return found.length === 0;
  };
  for (let at = pad.resume.length - 1; at >= 0; at--) if (!keep(pad.resume[at])) pad.resume.splice(at, 1);
  if (pad.nullResume !== undefined && !keep(pad.nullResume)) pad.consumeNullResume?.();
  return verdicts;
}

/**
 * Whether the doubt is settled now, by this verdict or by another that came first. By a key, a call may meet the doubt of
 * another scope: whoever resumes this one does not settle it.
 */
export async function settleBy(
  tp: Twiceproof,
  id: string,
  resumed: ResumedVerdict,
  scope: string | undefined,
): Promise<boolean> {
  const doubt = await tp.doubts.get(id);
  if (doubt === null) return true;
  return doubt.scope === (scope ?? null) && (await settle(tp, doubt, resumed));
}

async function settle(tp: Twiceproof, doubt: Doubt, resumed: ResumedVerdict): Promise<boolean> {
  const { verdict, ...by } = resumed;
  try {
    await tp.doubts.resolve(doubt, verdict, by);
    return true;
  } catch (error) {
    // A verdict that cannot be recorded is none. The doubt is told again.
    if (isTwiceproofError(error) && error.code === "INVALID_ARGUMENT") return false;
    throw error;
  }
}

/**
 * Settles what a resume decides, before the run that it starts, so that nothing else in its first step comes before it; gives
 * what to start the run with. Whoever may resume a thread may not settle another's doubts.
 *
 * @throws TwiceproofError `INVALID_ARGUMENT` for a verdict that is none, or is not on a doubt of this thread; nothing was
 * settled then, unless somebody else did
 */
export async function settleResumed(tp: Twiceproof, input: unknown, thread: string): Promise<unknown> {
  if (!isCommand(input)) return input;
  const { verdicts, isAll } = readResume(input.resume);
  if (isAll && (input.update !== undefined || hasGoto(input)))
    throw invalid("A resume that is a verdict takes no `update` and no `goto`: use `doubtResume`, or resume twice");
  const found = await Promise.all(
    verdicts.map(async ([id, verdict]) => ({ doubt: await doubtOf(tp, id, thread), verdict })),
  );
  for (const { doubt, verdict } of found) if (doubt !== null) await settle(tp, doubt, verdict);
  return isAll ? null : input;
}

/** Null when it is settled: a resume may be sent again. */
async function doubtOf(tp: Twiceproof, id: string, thread: string): Promise<Doubt | null> {
  const doubt = await tp.doubts.get(id);
  if (doubt === null ? (await tp.doubts.history(id)).length > 0 : doubt.scope === thread) return doubt;
  throw invalid(`A resume of this thread holds a verdict on ${shortRef(id)}, which is no doubt of it`);
}

function hasGoto({ goto }: { readonly goto?: unknown }): boolean {
  return goto !== undefined && !(Array.isArray(goto) && goto.length === 0);
}
