import type { EffectRules } from "@twiceproof/core";
import { TwiceproofError } from "@twiceproof/core";
import { checkOptions, checkRules, ruleNames } from "@twiceproof/core/adapter";
import { named } from "./problems.ts";
import type { InputOf, OutputOf } from "./sdk.ts";

/**
 * `effect`: never run again after a doubt. `idempotent`: may run again after a doubt. `read`: passed through as it is, and
 * always fresh.
 */
export type Kind = "effect" | "idempotent" | "read";

/** The rules of an effect, for a tool. */
export interface ToolRules<Input = unknown, Result = unknown> extends Omit<EffectRules<Input, Result>, "types"> {
  /**
   * For an `execute` that gives an async iterable and is no `async function*`, as compilers for ES2017 and older make
   * them: its yields are passed on as preliminary results. Without it only the last one arrives.
   */
  readonly streaming?: true | undefined;
}

/** A kind for every tool, or a function for sets that are known at run time only. */
export type Kinds<Tools> = { readonly [Name in keyof Tools]: Kind } | ((name: string, tool: object) => Kind);

/** By tool: what goes beyond its kind. */
export type RulesOf<Tools> = {
  readonly [Name in keyof Tools]?: Omit<ToolRules<InputOf<Tools[Name]>, OutputOf<Tools[Name]>>, "kind">;
};

/** Rules of any tool. */
export type AnyRules = ToolRules<never>;

const { types: _types, ...shared } = ruleNames;
export const toolRuleNames: Record<keyof ToolRules, true> = { ...shared, streaming: true };

/** @throws TwiceproofError `INVALID_ARGUMENT`, naming the tool */
export function checkToolRules(name: string, rules: AnyRules): void {
  named(name, () => {
    checkOptions("a tool's rules", rules, toolRuleNames);
    checkRules(rules);
    if (rules.streaming !== undefined && typeof rules.streaming !== "boolean")
      throw new TwiceproofError("INVALID_ARGUMENT", "`streaming` is true, or left out.");
  });
}

const kinds: readonly unknown[] = ["effect", "idempotent", "read"];

/** @throws TwiceproofError `TOOL_UNCLASSIFIED`, naming the tool */
export function kindOf<Tools>(given: Kinds<Tools>, name: string & keyof Tools, tool: object): Kind {
  const kind: unknown = typeof given === "function" ? given(name, tool) : given?.[name];
  if (kinds.includes(kind)) return kind as Kind;
  throw new TwiceproofError(
    "TOOL_UNCLASSIFIED",
    `The tool "${name}" has no kind: \`kinds\` must say "effect", "idempotent" or "read" for it.`,
  );
}
