import { types } from "node:util";
import { builtinOf, className, isExactly, isPlainObject, propertyPath, shortPath } from "./plain.ts";

const maxDepth = 500;
/** Shared references are written out each time; without a bound, thirty nested pairs of one object would never end. */
const maxLength = 64 * 1024 * 1024;

/**
 * One stable text per value: equal inputs have equal texts, different inputs different ones, on every machine and version
 * of Node. JSON as `JSON.stringify` writes it, keys sorted by UTF-16 code units; what JSON cannot say begins with `!`,
 * which no JSON value does. Neither the order of keys nor that of a Map or Set counts. Buffer, Uint8Array and ArrayBuffer
 * of the same bytes are equal; so are 0 and -0, because JSON transport turns one into the other and a call that is sent
 * again must be the same call.
 *
 * Throws a `TypeError` with `code: "INVALID_INPUT"` for everything else. It names the place and never the value.
 */
export function canonical(input: unknown): string {
  const open = new Set<object>();
  let length = 0;

  function leaf(text: string, path: string): string {
    length += text.length;
    if (length > maxLength)
      fail(path, "makes the input larger than 64 MiB", "pass an id or a hash in place of large data");
    return text;
  }

  function write(value: unknown, path: string): string {
    switch (typeof value) {
      case "string":
      case "boolean":
        return leaf(JSON.stringify(value), path);
      case "number":
        return leaf(number(value), path);
      case "bigint":
        return leaf(`!bigint"${value}"`, path);
      case "undefined":
        return leaf("!undefined", path);
      case "function":
        return fail(path, "is a function", "leave it out");
      case "symbol":
        return fail(path, "is a symbol", "pass a string");
      case "object":
        if (value === null) return leaf("null", path);
    }
    if (open.has(value)) fail(path, "contains itself", "pass a tree");
    if (open.size >= maxDepth) fail(path, `is nested more than ${maxDepth} levels deep`, "pass something flatter");
    open.add(value);
    const text = leaf("", path) + structured(value, path);
    open.delete(value);
    return text;
  }

  function structured(value: object, path: string): string {
    const builtin = builtinOf(value);
    if (builtin === "Array") return array(value as unknown[], path);
    if (types.isUint8Array(value) && (isExactly(value, "Uint8Array") || isExactly(value, "Buffer"))) {
      return leaf(bytes(value.buffer, value.byteOffset, value.byteLength, path), path);
    }
    if (builtin !== undefined && builtin !== "RegExp" && builtin !== "URLSearchParams") noExtras(value, path);
    switch (builtin) {
      case "Date":
        if (Number.isNaN((value as Date).getTime())) fail(path, "is an invalid Date", "pass a valid one, or null");
        return leaf(`!date"${(value as Date).toISOString()}"`, path);
      case "Map":
        return `!map[${[...(value as Map<unknown, unknown>)]
          .map(([k, v], at) => `[${write(k, `[...${path}][${at}][0]`)},${write(v, `[...${path}][${at}][1]`)}]`)
          .sort()
          .join(",")}]`;
      case "Set":
        return `!set[${[...(value as Set<unknown>)]
          .map((member, at) => write(member, `[...${path}][${at}]`))
          .sort()
          .join(",")}]`;
      case "ArrayBuffer":
        return leaf(bytes(value as ArrayBuffer, 0, (value as ArrayBuffer).byteLength, path), path);
      case "URL":
        return leaf(`!url${JSON.stringify((value as URL).href)}`, path);
      case "URLSearchParams":
        return fail(path, "is a URLSearchParams", "pass its toString()");
      case "RegExp":
        return fail(path, "is a RegExp", "pass its source and flags");
      case undefined:
        return isPlainObject(value) ? object(value, path) : refuse(value, path);
    }
  }

  function array(value: readonly unknown[], path: string): string {
    if (Reflect.ownKeys(value).length > value.length + 1)
      fail(path, "is an array with properties of its own", "pass a plain object");
    const items: string[] = [];
    for (let at = 0; at < value.length; at++) {
      const here = `${path}[${at}]`;
      items.push(write(property(value, at, here, "is a hole in an array"), here));
    }
    return `[${items.join(",")}]`;
  }

  function object(value: object, path: string): string {
    const pairs: string[] = [];
    for (const key of Reflect.ownKeys(value).sort(byCodeUnits)) {
      if (typeof key === "symbol") fail(path, "has a property whose key is a symbol", "use string keys");
      const here = propertyPath(path, key);
      const name = leaf(JSON.stringify(key), here);
      pairs.push(`${name}:${write(property(value, key, here, "is missing"), here)}`);
    }
    return `{${pairs.join(",")}}`;
  }

  return write(input, "input");
}

function number(value: number): string {
  if (Number.isNaN(value)) return "!nan";
  if (Number.isFinite(value)) return JSON.stringify(value);
  return value > 0 ? "!inf" : "!-inf";
}

/** A getter may answer differently to the effect's body, and what is not enumerable is lost on most ways. */
function property(owner: object, key: string | number, path: string, missing: string): unknown {
  const found = Object.getOwnPropertyDescriptor(owner, key);
  if (found === undefined) return fail(path, missing, "pass null or undefined there");
  if (!("value" in found)) fail(path, "is a getter", "pass its value");
  if (!found.enumerable) fail(path, "is not enumerable", "pass an ordinary property");
  return found.value;
}

function bytes(buffer: ArrayBufferLike, offset: number, length: number, path: string): string {
  if (types.isSharedArrayBuffer(buffer)) fail(path, "is memory shared between threads", "pass a copy of the bytes");
  if ((buffer as ArrayBuffer).detached)
    fail(path, "is a detached ArrayBuffer", "pass the bytes before they are transferred");
  return `!bytes"${Buffer.from(buffer, offset, length).toString("base64")}"`;
}

function noExtras(value: object, path: string): void {
  if (Reflect.ownKeys(value).length > 0)
    fail(path, `is a ${className(value)} with properties of its own`, "pass them beside it");
}

function refuse(value: object, path: string): never {
  if (types.isPromise(value)) fail(path, "is a Promise", "await it first");
  if (types.isNativeError(value)) fail(path, "is an Error", "pass its message");
  if (types.isSharedArrayBuffer(value)) fail(path, "is memory shared between threads", "pass a copy of the bytes");
  if (types.isBoxedPrimitive(value)) fail(path, "is a boxed primitive", "pass the primitive");
  if (ArrayBuffer.isView(value)) fail(path, `is a ${className(value)}`, "pass a Uint8Array, or an array of numbers");
  return fail(path, `is an instance of ${className(value)}`, "pass its data as a plain object");
}

/** Symbols come last, where any of them is refused. */
function byCodeUnits(a: string | symbol, b: string | symbol): number {
  if (typeof a === "symbol" || typeof b === "symbol")
    return Number(typeof a === "symbol") - Number(typeof b === "symbol");
  return a < b ? -1 : a > b ? 1 : 0;
}

function fail(path: string, what: string, instead: string): never {
  const error = new TypeError(`\`${shortPath(path)}\` ${what}; ${instead}.`);
  throw Object.assign(error, { code: "INVALID_INPUT" as const });
}
