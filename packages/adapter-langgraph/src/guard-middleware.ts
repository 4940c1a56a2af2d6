import type { AnyTool } from "./guard-tool.ts";
import { type GuardSetOptions, guardOf } from "./kinds.ts";
import { leavingByDoubt } from "./watch.ts";

/** A middleware of langchain's `createAgent`, by its shape: nothing of langchain is loaded. */
export interface GuardMiddleware {
  readonly name: string;
  readonly wrapToolCall: <Request extends ToolRequest, Answer>(
    request: Request,
    handler: (request: Request) => Answer | Promise<Answer>,
  ) => Promise<Answer>;
}

interface ToolRequest {
  readonly tool: unknown;
}

/**
 * For `createAgent`: guards every tool of the agent, its middlewares' tools as well. It belongs first in the list: what
 * another middleware, such as one that retries, makes of a doubt does not count then.
 *
 * @throws TwiceproofError `INVALID_ARGUMENT`; at a call of a tool without a kind `TOOL_UNCLASSIFIED`
 */
export function guardMiddleware(options: GuardSetOptions): GuardMiddleware {
  const guard = guardOf("guardMiddleware", options);
  const copies = new WeakMap<object, AnyTool>();

  function guardedOnce(tool: AnyTool): AnyTool {
    const copy = copies.get(tool) ?? guard(tool);
    copies.set(tool, copy);
    return copy;
  }

  const middleware: GuardMiddleware = {
    name: "TwiceproofGuard",
    wrapToolCall: (request, handler) => {
      // Without a tool the model named one that there is not: the agent says so.
      const tool = request.tool as AnyTool | undefined;
      return leavingByDoubt(() => handler(tool === undefined ? request : { ...request, tool: guardedOnce(tool) }));
    },
  };
  guards.set(middleware, guardedOnce);
  return middleware;
}

const guards = new WeakMap<object, (tool: AnyTool) => AnyTool>();

/** How this middleware guards a tool; undefined when it is another one. */
export function middlewareGuard(middleware: object): ((tool: AnyTool) => AnyTool) | undefined {
  return guards.get(middleware);
}
