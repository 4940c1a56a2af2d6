import { types } from "node:util";
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
  Object.defineProperty(execute, guardKey, { value: guard });
  const prototype: object | null = Object.getPrototypeOf(tool);
  const isPlain = !types.isProxy(tool) && (prototype === null || prototype === Object.prototype);
  const own = isPlain ? Object.getOwnPropertyDescriptors(tool) : forwarded(tool);
  return Object.create(isPlain ? prototype : standIn(tool), {
    ...own,
    execute: { value: execute, enumerable: true, writable: true, configurable: true },
  });
}

/** Of a class's instance, or of a tool that a Proxy makes up: read where they are, at the time they are asked for. */
function forwarded(tool: object): PropertyDescriptorMap {
  const forward = (name: PropertyKey): PropertyDescriptor => ({
    get: () => Reflect.get(tool, name) as unknown,
    set(this: object, value: unknown) {
      Object.defineProperty(this, name, { value, enumerable: true, writable: true, configurable: true });
    },
    enumerable: Object.prototype.propertyIsEnumerable.call(tool, name),
    configurable: true,
  });
  return Object.fromEntries(Reflect.ownKeys(tool).map((name) => [name, forward(name)]));
}

/** A prototype that asks the tool. What it inherits runs on the tool itself: private members are on no copy. */
function standIn(tool: object): object {
  return new Proxy(Object.create(Object.getPrototypeOf(tool)) as object, {
    get(_target, name) {
      const value: unknown = Reflect.get(tool, name);
      if (typeof value !== "function" || name === "constructor" || types.isProxy(tool)) return value;
      return new Proxy(value, { apply: (run, _this, given) => Reflect.apply(run, tool, given) as unknown });
    },
    has: (_target, name) => Reflect.has(tool, name),
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
