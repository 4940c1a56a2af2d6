import { interrupt, isCommand } from "@langchain/langgraph";
import { type Doubt, isTwiceproofError, type Twiceproof, type TwiceproofError } from "@twiceproof/core";
import type { ToolConfig } from "./config.ts";
import type { DoubtInterrupt } from "./doubt-interrupt.ts";
import { type ResumedVerdict, verdictsIn } from "./resume.ts";

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

/** Whether the doubt is settled now, by this verdict or by another that came first. */
export async function settleBy(tp: Twiceproof, id: string, resumed: ResumedVerdict): Promise<boolean> {
  const doubt = await tp.doubts.get(id);
  return doubt === null || (await settle(tp, doubt, resumed));
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
 * Before the run that a resume starts, so that nothing else in its first step comes before them. Whoever may resume a
 * thread may not settle another's doubts.
 */
export async function settleResumed(tp: Twiceproof, input: unknown, thread: unknown): Promise<void> {
  const resume: unknown = isCommand(input) ? input.resume : undefined;
  if (typeof resume !== "object" || resume === null) return;
  for (const value of [resume, ...Object.values(resume)])
    for (const [id, verdict] of verdictsIn(value)) {
      const doubt = await tp.doubts.get(id);
      if (doubt !== null && doubt.scope === String(thread)) await settle(tp, doubt, verdict);
    }
}
