import { TwiceproofError } from "./errors.ts";
import { randomId } from "./id.ts";
import type { Decision } from "./store.ts";
import { checkNote, checkOptions } from "./validate.ts";

/** Who decides, and on what grounds: all of it is kept. */
export interface DecidedBy {
  readonly who: string;
  readonly why: string;
  readonly evidence?: string | undefined;
  /** 32 lower-case hex digits; give one to make a repeated request answer `already`. Drawn afresh by default. */
  readonly decisionId?: string | undefined;
}

const decidedNames: Record<keyof DecidedBy, true> = { who: true, why: true, evidence: true, decisionId: true };

/**
 * `what`: as messages name it.
 *
 * @throws TwiceproofError `INVALID_ARGUMENT`
 */
export function decisionOf(what: string, by: DecidedBy): Decision {
  for (const field of ["who", "why"] as const)
    if (typeof by?.[field] !== "string" || by[field].trim() === "")
      throw new TwiceproofError("INVALID_ARGUMENT", `${what} needs \`${field}\`: it is kept in the history.`);
  checkOptions(what, by, decidedNames);
  const { decisionId = randomId(), who, why, evidence = null } = by;
  checkNote("who", who);
  checkNote("why", why);
  if (evidence !== null) checkNote("evidence", evidence);
  if (typeof decisionId !== "string" || !/^[0-9a-f]{32}$/.test(decisionId))
    throw new TwiceproofError("INVALID_ARGUMENT", "`decisionId` must be 32 lower-case hex digits.");
  return { decisionId, who, why, evidence };
}
