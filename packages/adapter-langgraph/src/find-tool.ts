import { middlewareGuard } from "./guard-middleware.ts";
import { type AnyTool, isGuarded } from "./guard-tool.ts";
import type { AnyPregel } from "./run-config.ts";

/** The guarded tool of this name that a graph calls. Undefined when it is not guarded, or is called by code that nobody can look into. */
export type FindTool = (name: string) => AnyTool | undefined;

/** In the tool nodes of a graph, as they are when it is asked; of an agent, as its middleware guards them. */
export function toolsIn(graph: object, pregel: AnyPregel): FindTool {
  const { middleware = [] } = (graph as { options?: { middleware?: readonly object[] } }).options ?? {};
  const guards = middleware.flatMap((each) => middlewareGuard(each) ?? []);
  return (name) => {
    for (const node of Object.values(pregel.nodes ?? {})) {
      const { tools } = (node as { bound?: { tools?: unknown } }).bound ?? {};
      if (!Array.isArray(tools)) continue;
      const tool = (tools as AnyTool[]).find((each) => each?.name === name);
      if (tool === undefined) continue;
      return [tool, ...guards.flatMap((guard) => tryGuard(guard, tool))].find(isGuarded);
    }
    return undefined;
  };
}

function tryGuard(guard: (tool: AnyTool) => AnyTool, tool: AnyTool): AnyTool[] {
  try {
    return [guard(tool)];
  } catch {
    // This middleware does not know it, or LangChain runs it otherwise: then nobody guards it.
    return [];
  }
}
