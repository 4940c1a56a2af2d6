import { type Effect, type EffectRules, type Twiceproof, TwiceproofError } from "@twiceproof/core";
import { checkName, checkOptions, checkRules, ruleNames } from "@twiceproof/core/adapter";
import { langgraphTypes } from "./types.ts";

/**
 * `effect`: claimed, recorded, and never run again after a doubt. `idempotent`: may run again after a doubt. `read`: left
 * as it is.
 */
export type Kind = "effect" | "idempotent" | "read";

/**
 * The rules of a tool that is an effect: those of `defineEffect`. Without `waitMs` a call that runs elsewhere is waited for
 * as long as it lives, or until the run is called off.
 */
export interface ToolRules<Input = unknown, Result = unknown> extends EffectRules<Input, Result> {
  /**
   * The body may leave by `interrupt()`, or by another of LangGraph's ways out, and is then entered again from its start:
   * promises that nothing happened before it does. Default false: leaving so is a doubt.
   */
  readonly mayInterrupt?: boolean | undefined;
}

const toolRuleNames: Record<keyof ToolRules, true> = { ...ruleNames, mayInterrupt: true };

/** A tool's rules, checked, and what goes with them. */
export interface Guard {
  readonly tp: Twiceproof;
  readonly name: string;
  readonly rules: EffectRules & Pick<Effect, "input">;
  readonly mayInterrupt: boolean;
}

/** @throws TwiceproofError `INVALID_ARGUMENT` */
export function makeGuard(tp: Twiceproof, name: string, given: ToolRules<never>, input?: Effect["input"]): Guard {
  const { mayInterrupt = false, types, ...rules } = given;
  checkTp(tp);
  checkName(name);
  checkRules({ ...rules, types } as EffectRules<never>);
  if (typeof mayInterrupt !== "boolean")
    throw new TwiceproofError("INVALID_ARGUMENT", "`mayInterrupt` must be true or false.");
  const all = types === undefined ? langgraphTypes : [...types, ...langgraphTypes];
  return { tp, name, mayInterrupt, rules: { ...rules, types: all, input } as Guard["rules"] };
}

export function checkTp(tp: unknown): void {
  if (typeof (tp as Twiceproof | undefined)?.once !== "function")
    throw new TwiceproofError("INVALID_ARGUMENT", "`tp` is missing, or is none: give what createTwiceproof made.");
}

export function checkToolRules(what: string, options: object, more: Readonly<Record<string, true>>): void {
  checkOptions(what, options, { ...more, ...toolRuleNames });
}
