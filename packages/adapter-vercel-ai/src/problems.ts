import { isTwiceproofError, TwiceproofError } from "@twiceproof/core";

export function invalid(name: string, rule: string): TwiceproofError {
  return new TwiceproofError("INVALID_ARGUMENT", `The tool "${name}": ${rule}`);
}

/** Makes what a check throws say which tool it is about. */
export function named(name: string, check: () => void): void {
  try {
    check();
  } catch (error) {
    throw isTwiceproofError(error) ? invalid(name, error.message) : error;
  }
}

export function turnMissing(name: string): TwiceproofError {
  return new TwiceproofError(
    "IDENTITY_MISSING",
    `Nothing says which "${name}" this is: its turn is not known. Nothing was executed.`,
    {
      help: [
        "Give one of these:",
        "  the chat's messages:     await run.repair(messages), before the model is called",
        "  a turn of your own:      withRun(tp, { thread, turn }, …)",
        "  a key for the tool:      rules: { key: (input) => 'charge:' + input.orderId }",
      ].join("\n"),
    },
  );
}

export function runFinished(): TwiceproofError {
  return new TwiceproofError("RUN_FINISHED", "This run is over already. Nothing was started.");
}

export function runOver(): TwiceproofError {
  return new TwiceproofError("RUN_LOST", "This run is over, and starts nothing any more.");
}
