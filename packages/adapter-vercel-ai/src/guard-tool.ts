import { checkName, checkOptions } from "@twiceproof/core/adapter";
import { call } from "./call.ts";
import { chatOf, enlist } from "./chat.ts";
import { effectOf, type Guard, guardOf, isEqual, kindIn, withExecute } from "./guard.ts";
import { checkPlace, type Place, placeNames, placeOf } from "./place.ts";
import { invalid, named } from "./problems.ts";
import { type AnyRules, checkToolRules, type ToolRules, toolRuleNames } from "./rules.ts";
import type { Execute, InputOf, OutputOf, ToolCallOptions } from "./sdk.ts";
import { follow, isAsyncIterable, isStreaming, lastOf } from "./streaming.ts";

/**
 * The same tool, whose calls are claimed before they run, recorded, and not run a second time. The tool that was given is
 * not changed; one without `execute` (of the provider, or of the page) is given back as it is, and so is a `read`.
 *
 * @throws TwiceproofError `INVALID_ARGUMENT`, `IDENTITY_MISSING`, naming the tool
 */
export function guardTool<T extends object>(
  name: string,
  tool: T,
  options: ToolRules<InputOf<T>, OutputOf<T>> & Place,
): T {
  checkName(name);
  named(name, () => checkOptions("guardTool", options ?? {}, { ...toolRuleNames, ...placeNames }));
  const rules = Object.fromEntries(Object.entries(options).filter(([rule]) => !Object.hasOwn(placeNames, rule)));
  return guarded(name, tool, rules as AnyRules, placeOf(options));
}

/** `guardTool`, with rules and place apart. */
export function guarded<T extends object>(name: string, tool: T, rules: AnyRules, place: Place): T {
  if (typeof tool !== "object" || tool === null) throw invalid(name, "it is no tool.");
  const { execute } = tool as { readonly execute?: Execute };
  checkToolRules(name, rules);
  const isRead = kindIn(rules) === "read";
  if (isRead) refuseRules(name, rules);
  checkPlace(name, place, rules.key !== undefined);
  if (execute === undefined) return tool;
  if (typeof execute !== "function") throw invalid(name, "its `execute` is no function.");
  const chat = chatOf(place);
  const guard: Guard = { name, rules, place, execute };
  const before = guardOf(execute);
  if (before !== undefined) {
    if (!isEqual(before, guard)) throw invalid(name, "it is guarded already, with other rules or in another run.");
    return tool;
  }
  if (isRead) return tool;
  if (chat) enlist(chat, name, guard);
  return withExecute(tool, executeOf(guard, tool, execute), guard);
}

/** They would silently not hold. */
function refuseRules(name: string, rules: AnyRules): void {
  const rule = Object.entries(rules).find(([rule, value]) => rule !== "kind" && value !== undefined)?.[0];
  if (rule !== undefined)
    throw invalid(name, `a \`read\` is passed through as it is, so the rule \`${rule}\` cannot hold.`);
}

/** It never uses its own `this`: some agents take `execute` off its tool. */
function executeOf(guard: Guard, tool: object, execute: Execute): Execute {
  const make = (options: ToolCallOptions, heard?: (value: unknown) => void) =>
    effectOf(guard, async (input, { signal }) => {
      const value = await execute.call(tool, input, { ...options, abortSignal: signal });
      return isAsyncIterable(value) ? await lastOf(value, heard) : value;
    });
  if (guard.rules.streaming || isStreaming(execute))
    return async function* (input, options = {}) {
      yield* follow((heard) => call(guard, make(options, heard), input, options));
    };
  return async (input, options = {}) => await call(guard, make(options), input, options);
}
