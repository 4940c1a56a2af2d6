import type { Effect } from "@twiceproof/core";
import { checkName } from "@twiceproof/core/adapter";
import { call } from "./call.ts";
import { chatOf, enlist } from "./chat.ts";
import { type Guard, withExecute } from "./guard.ts";
import { checkPlace, type Place, placeNames, placeOf } from "./place.ts";
import { invalid } from "./problems.ts";
import type { ToolCallOptions } from "./sdk.ts";

/** Any fields of a tool beside what the effect brings: `description`, `title`, `needsApproval`, `toModelOutput`, … */
export interface ToolFields {
  readonly description?: string | undefined;
  /** In place of the effect's own: for a schema that transforms, which must not be applied twice, and for ai 5's types. */
  readonly inputSchema?: unknown;
}

/** What the SDK's `tool({ … })` would give. */
export type EffectTool<Raw, Input, Result, Fields> = Omit<Fields, "run" | "tp" | "scope" | "turn" | "inputSchema"> & {
  readonly inputSchema: Fields extends { readonly inputSchema: infer Schema }
    ? Schema
    : NonNullable<Effect<Raw, Input>["input"]>;
  readonly execute: (input: Raw, options: ToolCallOptions) => Promise<Result>;
};

/**
 * A tool of a defined effect: its schema, its key and its rules. The body gets the idempotency key.
 *
 * @throws TwiceproofError `INVALID_ARGUMENT`, `IDENTITY_MISSING`, naming the tool
 */
export function effectTool<Raw, Input, Result, const Fields extends ToolFields>(
  effect: Effect<Raw, Input, Result>,
  options: Fields & Place,
): EffectTool<Raw, Input, Result, Fields> {
  const { name } = effect;
  checkName(name);
  const place = placeOf(options);
  checkPlace(name, place, effect.key !== undefined);
  const { inputSchema = effect.input } = options;
  if (inputSchema === undefined)
    throw invalid(name, "its effect has no `input` schema: give it one, or an `inputSchema`.");
  const fields = Object.fromEntries(Object.entries(options).filter(([field]) => !Object.hasOwn(placeNames, field)));
  const { name: _name, input: _input, run, ...rules } = effect as Effect;
  const guard: Guard = { name, rules, place, execute: run, effect: effect as Effect };
  const chat = chatOf(place);
  if (chat) enlist(chat, name, guard);
  const execute = async (input: unknown, callOptions: ToolCallOptions = {}) =>
    await call(guard, effect as Effect, input, callOptions);
  const tool = { ...fields, inputSchema };
  return withExecute(tool, execute, guard) as unknown as EffectTool<Raw, Input, Result, Fields>;
}
