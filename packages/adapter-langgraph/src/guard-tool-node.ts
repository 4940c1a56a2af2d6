import { TwiceproofError } from "@twiceproof/core";
import type { AnyTool } from "./guard-tool.ts";
import { checkNames, type GuardSetOptions, guardOf } from "./kinds.ts";

/**
 * Guards the tools of a `ToolNode`, LangGraph's or langchain's. The node itself is changed and given back: it may be an
 * instance of a class of one's own.
 *
 * @throws TwiceproofError `TOOL_UNCLASSIFIED`, `INVALID_ARGUMENT`
 */
export function guardToolNode<Node extends object>(node: Node & { tools: unknown[] }, options: GuardSetOptions): Node {
  if (!Array.isArray(node?.tools))
    throw new TwiceproofError("INVALID_ARGUMENT", "`guardToolNode` takes a ToolNode: an object with `tools`.");
  const tools = node.tools as AnyTool[];
  const guard = guardOf("guardToolNode", options);
  checkNames(
    "guardToolNode",
    options,
    tools.map(({ name }) => name),
  );
  node.tools = tools.map((tool) => guard(tool));
  return node;
}
