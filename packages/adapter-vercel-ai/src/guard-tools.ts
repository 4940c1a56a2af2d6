import { TwiceproofError } from "@twiceproof/core";
import { checkOptions } from "@twiceproof/core/adapter";
import { chatOf, enlist } from "./chat.ts";
import { guardOf, kindIn } from "./guard.ts";
import { guarded } from "./guard-tool.ts";
import { isSamePlace, type Place, placeNames, placeOf } from "./place.ts";
import { invalid } from "./problems.ts";
import { type AnyRules, type Kinds, kindOf, type RulesOf } from "./rules.ts";

export type GuardToolsOptions<Tools> = Place & {
  /** Every tool has one: what is forgotten does not compile, and throws `TOOL_UNCLASSIFIED`. */
  readonly kinds: Kinds<Tools>;
  readonly rules?: RulesOf<Tools> | undefined;
};

/**
 * Guards each tool of a set under the name that it has there.
 *
 * @throws TwiceproofError `TOOL_UNCLASSIFIED`, `INVALID_ARGUMENT`, `IDENTITY_MISSING`, naming the tool
 */
export function guardTools<Tools extends Record<string, object>>(
  tools: Tools,
  options: GuardToolsOptions<Tools>,
): Tools {
  checkOptions("guardTools", options, { kinds: true, rules: true, ...placeNames });
  checkTools(tools);
  const { kinds, rules = {} as RulesOf<Tools> } = options;
  const place = placeOf(options);
  for (const name of Object.keys(rules))
    if (!Object.hasOwn(tools, name)) throw invalid(name, "there are rules for it, but it is not among the tools.");
  const guard = (name: string & keyof Tools): object => {
    const tool = tools[name] as object;
    const kind = kindOf(kinds, name, tool);
    const own = Object.hasOwn(rules, name) ? (rules[name] as AnyRules | undefined) : undefined;
    return ofEffect(name, tool, kind, own, place) ?? guarded(name, tool, { ...own, kind }, place);
  };
  return Object.fromEntries(Object.keys(tools).map((name) => [name, guard(name)])) as Tools;
}

function checkTools(tools: unknown): void {
  const isSet = typeof tools === "object" && tools !== null && !Array.isArray(tools);
  if (!isSet || ("then" in tools && typeof tools.then === "function"))
    throw new TwiceproofError(
      "INVALID_ARGUMENT",
      "`tools` are an object, each tool under its name. (Where a promise gives them: `await` it.)",
    );
}

/** A tool made by `effectTool` has its rules already, and may stand here under another name than its effect's. */
function ofEffect(
  name: string,
  tool: object,
  kind: string,
  own: AnyRules | undefined,
  place: Place,
): object | undefined {
  const guard = guardOf((tool as { readonly execute?: unknown } | null)?.execute);
  if (!guard?.effect) return undefined;
  if (kind !== kindIn(guard.rules) || own !== undefined || !isSamePlace(place, guard.place))
    throw invalid(name, "its effect has other rules or was made for another run.");
  const chat = chatOf(place);
  if (chat) enlist(chat, name, guard);
  return tool;
}
