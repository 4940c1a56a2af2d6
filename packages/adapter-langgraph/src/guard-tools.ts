import type { AnyTool, InputOf, ResultOf } from "./guard-tool.ts";
import { checkNames, type GuardSetOptions, guardOf, type Kinds } from "./kinds.ts";
import type { ToolRules } from "./rules.ts";

export interface GuardToolsOptions<Tool extends AnyTool> extends Pick<GuardSetOptions, "tp"> {
  readonly kinds: Kinds<Tool["name"]>;
  /** More of a tool's rules, by its name. */
  readonly rules?: { readonly [Name in Tool["name"]]?: RulesOf<Extract<Tool, { readonly name: Name }>> } | undefined;
}

type RulesOf<Tool> = Omit<ToolRules<InputOf<Tool>, ResultOf<Tool>>, "kind">;

/**
 * Guards a list of tools. Where TypeScript knows their names, one without a kind does not compile.
 *
 * @throws TwiceproofError `TOOL_UNCLASSIFIED`, `INVALID_ARGUMENT`
 */
export function guardTools<const Tools extends readonly AnyTool[]>(
  tools: Tools,
  given: GuardToolsOptions<Tools[number]>,
): { -readonly [At in keyof Tools]: Tools[At] } {
  const options = given as unknown as GuardSetOptions;
  const guard = guardOf("guardTools", options);
  checkNames(
    "guardTools",
    options,
    tools.map(({ name }) => name),
  );
  return tools.map((tool) => guard(tool)) as { -readonly [At in keyof Tools]: Tools[At] };
}
