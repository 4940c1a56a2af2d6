import type { Effect, EffectContext } from "@twiceproof/core";
import { isSamePlace, type Place } from "./place.ts";
import type { AnyRules } from "./rules.ts";
import type { Execute } from "./sdk.ts";

/** What a guarded tool's `execute` carries. On the function, so that a copy of the tool keeps it. */
export interface Guard {
  readonly name: string;
  readonly rules: AnyRules;
  readonly place: Place;
  /** The tool's own. Of an effect's tool: the effect's body. */
  readonly execute: (...args: never) => unknown;
  /** Of an effect's tool. */
  readonly effect?: Effect;
}

const guardKey = Symbol.for("twiceproof.guard/1");

export function guardOf(execute: unknown): Guard | undefined {
  return typeof execute === "function" ? (execute as { readonly [guardKey]?: Guard })[guardKey] : undefined;
}

/** Equal rules: the same values, and the same functions. */
export function isEqual(one: Guard, other: Guard): boolean {
  return one.name === other.name && isSamePlace(one.place, other.place) && hasEqualRules(one.rules, other.rules);
}

function hasEqualRules(one: AnyRules, other: AnyRules): boolean {
  const names = new Set([...Object.keys(one), ...Object.keys(other)]) as Set<keyof AnyRules>;
  return [...names].every((name) => name === "kind" || one[name] === other[name]) && kindIn(one) === kindIn(other);
}

export const kindIn = ({ kind = "effect" }: AnyRules): string => kind;

/**
 * The tool with another `execute`. Not a spread: that would lose prototypes and call getters; not `Object.create(tool)`:
 * what is inherited is lost to those who spread it, and a frozen one forbids a new `execute`.
 */
export function withExecute<T extends object>(tool: T, execute: Execute, guard: Guard): T {
  const { execute: _own, ...others } = Object.getOwnPropertyDescriptors(tool) as PropertyDescriptorMap;
  Object.defineProperty(execute, guardKey, { value: guard });
  return Object.create(Object.getPrototypeOf(tool), {
    ...others,
    execute: { value: execute, enumerable: true, writable: true, configurable: true },
  });
}

/** The effect that one call of a tool is. */
export function effectOf(
  { name, rules }: Pick<Guard, "name" | "rules">,
  run: (input: unknown, context: EffectContext) => unknown,
): Effect {
  const { streaming: _streaming, ...effectRules } = rules;
  return { ...(effectRules as Omit<Effect, "name" | "run">), name, run };
}
