import { types } from "node:util";
import { type CodecType, protoKey } from "./codec-types.ts";
import { builtinOf, className, isPlainObject, propertyPath, shortPath } from "./plain.ts";

/** What a value needs in order to come back as it was. */
export interface Survey {
  /** JSON would change it. */
  readonly rich: boolean;
  /** Objects that a codec type takes apart, each asked once. */
  readonly reduced: ReadonlyMap<object, { readonly type: CodecType; readonly form: unknown }>;
}

/** Its message names a place and a kind, never a value. */
export class NotEncodable extends Error {}

/** Walks the whole value. Throws `NotEncodable` for what no format can give back. */
export function survey(result: unknown, codecTypes: readonly CodecType[]): Survey {
  const seen = new Set<object>();
  const reduced = new Map<object, { type: CodecType; form: unknown }>();
  let rich = false;

  function walk(value: unknown, path: string): void {
    switch (typeof value) {
      case "string":
      case "boolean":
        return;
      case "number":
        rich ||= !Number.isFinite(value) || Object.is(value, -0);
        return;
      case "undefined":
      case "bigint":
        rich = true;
        return;
      case "function":
        throw notEncodable(path, "a function");
      case "symbol":
        throw notEncodable(path, "a symbol");
      case "object":
        if (value === null) return;
    }
    // Met before: a cycle, or one object in two places, which JSON would make two.
    if (seen.has(value)) {
      rich = true;
      return;
    }
    seen.add(value);
    const type = codecTypes.find((candidate) => candidate.test(value));
    if (type === undefined) {
      structured(value, path);
      return;
    }
    const form = type.reduce(value);
    rich = true;
    reduced.set(value, { type, form });
    walk(form, path);
  }

  function structured(value: object, path: string): void {
    const builtin = builtinOf(value);
    switch (builtin) {
      case "Array":
        array(value as unknown[], path);
        return;
      case undefined:
        if (!isPlainObject(value)) throw notEncodable(path, kindOf(value));
        object(value, path);
        return;
      case "Map":
        [...(value as Map<unknown, unknown>)].forEach(([key, member], at) => {
          walk(key, `[...${path}][${at}][0]`);
          walk(member, `[...${path}][${at}][1]`);
        });
        break;
      case "Set":
        [...(value as Set<unknown>)].forEach((member, at) => {
          walk(member, `[...${path}][${at}]`);
        });
        break;
      case "Date":
      case "URL":
      case "URLSearchParams":
      case "RegExp":
      case "ArrayBuffer":
    }
    rich = true;
    if (Object.keys(value).length > 0) throw notEncodable(path, `a ${builtin} with properties of its own`);
  }

  function array(value: readonly unknown[], path: string): void {
    const keys = Object.keys(value);
    // Indices come first, in order, so the last key tells whether there is anything else.
    const last = keys.at(-1);
    if (last !== undefined && !/^\d+$/.test(last)) throw notEncodable(path, "an array with properties of its own");
    if (keys.length !== value.length || hasToJson(value)) rich = true;
    for (const key of keys) walk(value[Number(key)], `${path}[${key}]`);
  }

  function object(value: object, path: string): void {
    if (Symbol.toStringTag in value || Object.getOwnPropertySymbols(value).some((key) => isEnumerable(value, key)))
      throw notEncodable(path, "an object with symbols for keys");
    if (Object.getPrototypeOf(value) === null || hasToJson(value)) rich = true;
    if (isEnumerable(value, "__proto__")) reduced.set(value, { type: protoKey, form: protoKey.reduce(value) });
    for (const [key, member] of Object.entries(value)) walk(member, propertyPath(path, key));
  }

  walk(result, "result");
  return { rich, reduced };
}

/** `JSON.stringify` calls it even where it is not enumerable, or was put on a prototype. */
function hasToJson(value: object): boolean {
  return "toJSON" in value && typeof value.toJSON === "function";
}

function isEnumerable(value: object, key: PropertyKey): boolean {
  return Object.prototype.propertyIsEnumerable.call(value, key);
}

function kindOf(value: object): string {
  if (types.isPromise(value)) return "a Promise";
  return `an instance of ${className(value)}`;
}

function notEncodable(path: string, kind: string): NotEncodable {
  return new NotEncodable(`\`${shortPath(path)}\` is ${kind}`);
}
