import { DynamicStructuredTool } from "@langchain/core/tools";
import { isInteropZodSchema } from "@langchain/core/utils/types";
import { type Effect, type Twiceproof, TwiceproofError } from "@twiceproof/core";
import { checkOptions } from "@twiceproof/core/adapter";
import { withCalls } from "./guard-tool.ts";
import { makeGuard, type ToolRules } from "./rules.ts";

type Fields = ConstructorParameters<typeof DynamicStructuredTool>[0];

export interface EffectToolFields
  extends Pick<ToolRules, "mayInterrupt">,
    Partial<Pick<Fields, "responseFormat" | "returnDirect" | "metadata" | "tags" | "extras" | "verboseParsingErrors">> {
  readonly tp: Twiceproof;
  /** For the model. */
  readonly description: string;
  /** JSON schema, for the model, where the effect's `input` is no zod schema. */
  readonly schema?: Fields["schema"] | undefined;
}

const fieldNames: Record<keyof EffectToolFields, true> = {
  tp: true,
  description: true,
  schema: true,
  mayInterrupt: true,
  responseFormat: true,
  returnDirect: true,
  metadata: true,
  tags: true,
  extras: true,
  verboseParsingErrors: true,
};

/**
 * A tool of LangChain's whose function is the effect. The effect's context has the idempotency key for the outside API.
 *
 * @throws TwiceproofError `INVALID_ARGUMENT`
 */
export function effectTool<Name extends string, Raw, Input, Result>(
  effect: Effect<Raw, Input, Result> & { readonly name: Name },
  fields: EffectToolFields,
): DynamicStructuredTool & { readonly name: Name } {
  checkOptions("effectTool", fields ?? {}, fieldNames);
  if (typeof effect?.run !== "function") throw invalid("`effectTool` takes an effect made by defineEffect");
  const { tp, mayInterrupt, schema, ...rest } = fields;
  const { name, run, input, ...rules } = effect;
  if (typeof rest.description !== "string") throw invalid("`description` is missing: the model chooses a tool by it");
  // LangChain checks a zod schema itself: the effect gets what came out of it, once.
  const isZod = schema === undefined && isInteropZodSchema(input);
  if (schema === undefined && !isZod)
    throw invalid(`The input of "${name}" is no zod schema: give a JSON schema as \`schema\`, for the model`);
  const guard = makeGuard(tp, name, { ...rules, mayInterrupt } as ToolRules<never>, isZod ? undefined : input);
  const tool = new DynamicStructuredTool({
    ...rest,
    name,
    schema: (schema ?? input) as Fields["schema"],
    func: () => Promise.reject(new Error("an effect's tool is called through its guard")),
  } as Fields) as DynamicStructuredTool & { readonly name: Name };
  return withCalls(tool, guard, () => (parsed, context) => run(parsed as Input, context));
}

function invalid(rule: string): TwiceproofError {
  return new TwiceproofError("INVALID_ARGUMENT", `${rule}.`);
}
