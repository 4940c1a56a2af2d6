import { TwiceproofError } from "@twiceproof/core";
import { checkOptions } from "@twiceproof/core/adapter";
import type { Kind } from "./rules.ts";

export interface McpKindsOptions {
  /**
   * Believe what the server says of its own tools: `readOnlyHint` makes a tool a `read`, `idempotentHint` makes it
   * `idempotent`. Only for servers that you would let decide what may run twice. Default false.
   */
  readonly trustHints?: boolean | undefined;
}

interface Hints {
  readonly readOnlyHint?: unknown;
  readonly idempotentHint?: unknown;
}

/** For `kinds` of an MCP client's tools. Whatever the server does not say, or is not trusted in, is an `effect`. */
export function mcpKinds(options: McpKindsOptions = {}): (name: string, tool: object) => Kind {
  if (typeof options !== "object")
    throw new TwiceproofError(
      "INVALID_ARGUMENT",
      "`mcpKinds` makes the kinds: give `mcpKinds()`, and not the function.",
    );
  checkOptions("mcpKinds", options, { trustHints: true });
  return (_name, tool) => {
    const { annotations } = (tool as { readonly metadata?: { readonly annotations?: Hints } }).metadata ?? {};
    if (options.trustHints !== true || annotations === undefined) return "effect";
    if (annotations.readOnlyHint === true) return "read";
    return annotations.idempotentHint === true ? "idempotent" : "effect";
  };
}
