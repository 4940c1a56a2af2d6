import { types } from "node:util";

/** A plain object of any realm, or one without a prototype. Looks at the prototype only: boxed and exotic objects fail it. */
export function isPlainObject(value: object): boolean {
  const proto: unknown = Object.getPrototypeOf(value);
  if (proto === null || proto === Object.prototype) return true;
  return Object.getPrototypeOf(proto) === null && Object.hasOwn(proto as object, "isPrototypeOf");
}

/** The built-in itself, of any realm; instances of a subclass may carry more than its form, and are not. */
export function isExactly(value: object, name: string): boolean {
  return !isPlainObject(value) && className(value) === name;
}

/** For messages. Never throws, whatever the object does. */
export function className(value: object): string {
  try {
    const proto: unknown = Object.getPrototypeOf(value);
    const own = proto === null ? undefined : Object.getOwnPropertyDescriptor(proto, "constructor");
    const made: unknown = own?.value;
    return typeof made === "function" && made.name !== "" ? made.name : "an unnamed class";
  } catch {
    // A revoked proxy.
    return "an unnamed class";
  }
}

/** Built-ins that have a form of their own, told by their internal slots, so that a borrowed prototype deceives nobody. */
export type Builtin = "Array" | "Date" | "Map" | "Set" | "ArrayBuffer" | "RegExp" | "URL" | "URLSearchParams";

export function builtinOf(value: object): Builtin | undefined {
  const name = slotOf(value);
  return name !== undefined && isExactly(value, name) ? name : undefined;
}

function slotOf(value: object): Builtin | undefined {
  if (Array.isArray(value)) return "Array";
  if (types.isDate(value)) return "Date";
  if (types.isMap(value)) return "Map";
  if (types.isSet(value)) return "Set";
  if (types.isArrayBuffer(value)) return "ArrayBuffer";
  if (types.isRegExp(value)) return "RegExp";
  if (value instanceof URL) return "URL";
  if (value instanceof URLSearchParams) return "URLSearchParams";
  return undefined;
}

/** A property may be called after an address or an account: messages repeat only what looks like a name. */
export function safePart(key: PropertyKey): string {
  return /^[A-Za-z_$][\w$ -]{0,63}$|^\d{1,9}$/.test(String(key)) ? String(key) : "…";
}

/** `path` and the property, as one would write it in JavaScript. */
export function propertyPath(path: string, key: string): string {
  const safe = safePart(key);
  return /^[A-Za-z_$][\w$]*$/.test(safe) ? `${path}.${safe}` : `${path}[${safe === "…" ? safe : JSON.stringify(safe)}]`;
}

/** Paths of deep values would fill a page. */
export function shortPath(path: string): string {
  return path.length <= 200 ? path : `${path.slice(0, 200)}…`.toWellFormed();
}
