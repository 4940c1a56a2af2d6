import { TwiceproofError } from "@twiceproof/core";
import { type DoubtInterrupt, isDoubtInterrupt } from "./doubt-interrupt.ts";
import type { AnyPregel, RunConfig } from "./run-config.ts";

/** What the thread stopped at, whatever the run was asked to stream. */
export async function pendingInterrupts(graph: AnyPregel, config: RunConfig): Promise<readonly unknown[]> {
  const { thread_id } = config.configurable ?? {};
  if (thread_id === undefined) return [];
  const { tasks } = await graph.getState({ configurable: { thread_id } });
  return tasks.flatMap(({ interrupts }) => interrupts.map(({ value }) => value as unknown));
}

/** @throws TwiceproofError `EFFECT_IN_DOUBT`: the first doubt among them; the others are in its `cause` */
export function throwDoubts(interrupts: readonly unknown[]): void {
  const [first, ...others] = interrupts.filter(isDoubtInterrupt);
  if (first === undefined) return;
  const cause = new AggregateError(
    others.map((other) => inDoubt(other)),
    "Other effects of this run are in doubt too.",
  );
  throw inDoubt(first, others.length === 0 ? {} : { cause });
}

function inDoubt({ id, ref, message }: DoubtInterrupt, details: { readonly cause?: unknown } = {}): TwiceproofError {
  return new TwiceproofError("EFFECT_IN_DOUBT", message, {
    id,
    ref,
    help: [
      `Claim ${id}. Find out whether it happened, then settle it:`,
      "  const doubt = await tp.doubts.get(error.id);",
      "  await tp.doubts.resolve(doubt, done(…) | doneWithoutResult() | notDone() | refused(…), { who, why });",
      "and invoke the graph again on this thread, with null or with the same input and run id: it goes on from its checkpoint.",
    ].join("\n"),
    ...details,
  });
}
