import { types } from "node:util";
import { className, isExactly } from "./plain.ts";

/** A type that results may contain beside the built-in ones. What it writes can be read only where it is known. */
export interface CodecType {
  /** Stands in every record: `package/Type`, and it never changes. */
  readonly name: string;
  test(value: object): boolean;
  /** A value made of JSON, of built-in types, or of other codec types. */
  reduce(value: object): unknown;
  revive(form: unknown): unknown;
}

const viewConstructors = {
  DataView,
  Int8Array,
  Uint8Array,
  Uint8ClampedArray,
  Int16Array,
  Uint16Array,
  Int32Array,
  Uint32Array,
  Float32Array,
  Float64Array,
  BigInt64Array,
  BigUint64Array,
};

/**
 * A Buffer comes back as a Buffer, since its methods differ from those of a Uint8Array. devalue records the whole buffer
 * behind a view; only the bytes of the view are part of the result, and what lies beside them may be another's secret.
 */
const view: CodecType = {
  name: "twiceproof/bytes",
  test: (value) =>
    ArrayBuffer.isView(value) && (isExactly(value, "Buffer") || Object.hasOwn(viewConstructors, className(value))),
  reduce(value) {
    const { buffer, byteOffset, byteLength } = value as ArrayBufferView;
    return [className(value), Buffer.from(buffer, byteOffset, byteLength).toString("base64")];
  },
  revive(form) {
    const [name, base64] = form as ["Buffer" | keyof typeof viewConstructors, string];
    if (name === "Buffer") return Buffer.from(base64, "base64");
    // A copy with a buffer of its own: a small Buffer shares its memory with others.
    const View: new (bytes: ArrayBuffer) => ArrayBufferView = viewConstructors[name];
    return new View(Uint8Array.from(Buffer.from(base64, "base64")).buffer);
  },
};

const errorConstructors: Readonly<Record<string, new (message: string, options?: ErrorOptions) => Error>> = {
  EvalError,
  RangeError,
  ReferenceError,
  SyntaxError,
  TypeError,
  URIError,
};

interface ErrorForm {
  readonly name: string;
  readonly message: string;
  readonly code?: string | number;
  readonly cause?: unknown;
  readonly errors?: readonly unknown[];
}

/** Name, message, code, cause and the members of an `AggregateError`. The stack and other properties are not part of a result. */
const error: CodecType = {
  name: "twiceproof/Error",
  test: (value) => types.isNativeError(value) || value instanceof Error,
  reduce(value) {
    const { name, message, code, errors } = value as Partial<ErrorForm>;
    return {
      name: String(name),
      message: String(message),
      ...((typeof code === "string" || typeof code === "number") && { code }),
      ...("cause" in value && { cause: value.cause }),
      ...(Array.isArray(errors) && { errors }),
    } satisfies ErrorForm;
  },
  revive(form) {
    const { name, message, code, errors, ...options } = form as ErrorForm;
    const made = errors
      ? new AggregateError(errors, message, options)
      : new (Object.hasOwn(errorConstructors, name) ? (errorConstructors[name] ?? Error) : Error)(message, options);
    if (made.name !== name) Object.defineProperty(made, "name", { value: name, configurable: true, writable: true });
    made.stack = `${name}: ${message}`;
    return code === undefined ? made : Object.assign(made, { code });
  },
};

/**
 * devalue refuses objects with a key `__proto__`, because assigning one sets the prototype; `fromEntries` defines it.
 * The survey finds them itself, since JSON keeps such keys and this type is needed for rich values alone.
 */
export const protoKey: CodecType = {
  name: "twiceproof/entries",
  test: () => false,
  reduce: (value) => [Object.getPrototypeOf(value) === null, Object.entries(value)],
  revive(form) {
    const [bare, entries] = form as [boolean, [string, unknown][]];
    const made = Object.fromEntries(entries);
    return bare ? Object.setPrototypeOf(made, null) : made;
  },
};

/** Asked in this order, after the types of the user. */
export const ownTypes: readonly CodecType[] = [view, error, protoKey];
