import type { AnyTool } from "./guard-tool.ts";
import { checkNames, type GuardSetOptions, guardOf } from "./kinds.ts";

/**
 * Guards a list of tools. Where TypeScript knows their names, one without a kind does not compile.
 *
 * @throws TwiceproofError `TOOL_UNCLASSIFIED`, `INVALID_ARGUMENT`
 */
export function guardTools<const Tools extends readonly AnyTool[]>(
  tools: Tools,
  options: GuardSetOptions<Tools[number]["name"]>,
): { -readonly [At in keyof Tools]: Tools[At] } {
  const guard = guardOf("guardTools", options);
  checkNames(
    "guardTools",
    options,
    tools.map(({ name }) => name),
  );
  return tools.map((tool) => guard(tool)) as { -readonly [At in keyof Tools]: Tools[At] };
}
