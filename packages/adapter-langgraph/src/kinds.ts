import { type Twiceproof, TwiceproofError } from "@twiceproof/core";
import { checkOptions } from "@twiceproof/core/adapter";
import { type AnyTool, guardTool, isGuarded } from "./guard-tool.ts";
import { checkTp, type Kind, type ToolRules } from "./rules.ts";

/** The kind of every tool by its name; or a function, for sets that are known at run time only, such as MCP's. */
export type Kinds<Name extends string = string> =
  | { readonly [Each in Name]: Kind }
  | ((name: string) => Kind | undefined);

export interface GuardSetOptions {
  readonly tp: Twiceproof;
  readonly kinds: Kinds;
  /** More of a tool's rules, by its name. */
  readonly rules?: { readonly [Name in string]?: Omit<ToolRules<never>, "kind"> } | undefined;
}

const optionNames: Record<keyof GuardSetOptions, true> = { tp: true, kinds: true, rules: true };

/**
 * Guards single tools of a set, each by its kind. A tool that is guarded already is left as it is.
 *
 * @throws TwiceproofError `INVALID_ARGUMENT`; its result throws `TOOL_UNCLASSIFIED`
 */
export function guardOf(what: string, options: GuardSetOptions): <T extends AnyTool>(tool: T) => T {
  checkOptions(what, options ?? {}, optionNames);
  const { tp, kinds, rules = {} } = options;
  checkTp(tp);
  if (typeof kinds !== "function" && (typeof kinds !== "object" || kinds === null))
    throw new TwiceproofError("INVALID_ARGUMENT", "`kinds` must be an object, by the tools' names, or a function.");
  if (typeof kinds === "object") {
    const stranger = Object.keys(rules ?? {}).find((name) => !Object.hasOwn(kinds, name));
    if (stranger !== undefined)
      throw new TwiceproofError(
        "INVALID_ARGUMENT",
        `\`rules\` of ${what} names "${stranger}", which is not in \`kinds\`: ${Object.keys(kinds).join(", ")}.`,
      );
  }
  return (tool) => {
    if (isGuarded(tool)) return tool;
    const { name } = tool;
    const kind = typeof kinds === "function" ? kinds(name) : Object.hasOwn(kinds, name) ? kinds[name] : undefined;
    if (kind === undefined) throw unclassified(name);
    if (kind === "read") return tool;
    return guardTool(tool, { ...(Object.hasOwn(rules, name) && rules[name]), kind, tp } as Parameters<
      typeof guardTool
    >[1]) as typeof tool;
  };
}

/** A misspelt name would be a tool of which nobody said what it is. */
export function checkNames(what: string, options: GuardSetOptions, names: readonly string[]): void {
  for (const field of ["kinds", "rules"] as const) {
    const given = options[field];
    if (typeof given !== "object") continue;
    const stranger = Object.keys(given).find((name) => !names.includes(name));
    if (stranger !== undefined)
      throw new TwiceproofError(
        "INVALID_ARGUMENT",
        `\`${field}\` of ${what} names "${stranger}", which is no tool of this set: ${names.join(", ")}.`,
      );
  }
}

function unclassified(name: string): TwiceproofError {
  return new TwiceproofError(
    "TOOL_UNCLASSIFIED",
    `Nobody said what the tool "${name}" is. Add it to \`kinds\`: "effect", "idempotent" or "read". Nothing was executed.`,
  );
}
