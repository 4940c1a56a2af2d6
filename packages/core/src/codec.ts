import { promisify } from "node:util";
import zlib from "node:zlib";
import { NotEncodable, type Survey, survey } from "./codec-survey.ts";
import { type CodecType, ownTypes } from "./codec-types.ts";
import { TwiceproofError } from "./errors.ts";
import type { Payload } from "./store.ts";

export type { CodecType } from "./codec-types.ts";

const compress = promisify(zlib.zstdCompress);
const decompress = promisify(zlib.zstdDecompress);
/** Below this a record is worth more when people can read it. */
const minCompressedBytes = 16 * 1024;

export interface CodecOptions {
  readonly types?: readonly CodecType[];
  /** Counted on the recorded text's UTF-8 bytes, after compression. 1 MiB. */
  readonly maxResultBytes?: number;
}

export type Encoded =
  /** `value` is what `decode(payload)` gives: a fresh copy, in the very form that later callers get (promise 7). */
  | { readonly kept: true; readonly payload: Payload; readonly value: unknown }
  /** Recorded as "completed, result unavailable". `why` is for the operator; it names a place, never a value. */
  | { readonly kept: false; readonly why: string };

export interface Codec {
  /** Never rejects. What is not enumerable is not part of a result; neither is what a type's own form leaves out. */
  encode(value: unknown): Promise<Encoded>;
  /** Rejects with `EFFECT_RESULT_UNAVAILABLE` where the payload cannot be read here. */
  decode(payload: Payload): Promise<unknown>;
}

/**
 * Results as recorded text, well-formed and without NUL: plain JSON where the value survives it unchanged, and devalue's
 * form, loaded when first needed, for Date, Map, Set, bigint, bytes, undefined, NaN, -0, URL, RegExp, Error and cycles.
 */
export function createCodec({ types = [], maxResultBytes = 1024 * 1024 }: CodecOptions = {}): Codec {
  checkTypes(types);
  const allTypes = [...types, ...ownTypes];
  const revivers = Object.fromEntries(allTypes.map((type) => [type.name, ([form]: [unknown]) => type.revive(form)]));

  async function write(value: unknown): Promise<Payload> {
    if (value === undefined) return { format: "void", text: "" };
    const found = survey(value, allTypes);
    if (!found.rich) return { format: "json", text: JSON.stringify(value) };
    const { stringify } = await import("devalue");
    return { format: "rich/1", text: stringify(value, reducers(found, allTypes)) };
  }

  async function read({ format, text }: Payload): Promise<unknown> {
    switch (format) {
      case "void":
        return undefined;
      case "json":
        return JSON.parse(text);
      case "rich/1":
        return (await import("devalue")).parse(text, revivers);
      case "json+zstd":
      case "rich/1+zstd": {
        const plain = await decompress(Buffer.from(text, "base64"));
        return read({ format: format.slice(0, -"+zstd".length), text: plain.toString("utf8") });
      }
    }
    throw new Error("unknown format");
  }

  return {
    async encode(value) {
      try {
        const plain = await write(value);
        const payload = await smaller(plain);
        if (Buffer.byteLength(payload.text, "utf8") > maxResultBytes)
          return { kept: false, why: `its recorded form would take more than ${maxResultBytes} bytes` };
        return { kept: true, payload, value: await read(plain) };
      } catch (error) {
        // Other errors are devalue's, a type's or a stack overflow; their messages may hold values.
        return { kept: false, why: error instanceof NotEncodable ? error.message : "it could not be encoded" };
      }
    },
    async decode(payload) {
      try {
        return await read(payload);
      } catch {
        // The cause is left out: a parser quotes what it could not parse.
        throw new TwiceproofError("EFFECT_RESULT_UNAVAILABLE", unreadable, {
          help: `The result is recorded as "${payload.format}": written by a newer version, or with an adapter's type that is missing here.`,
        });
      }
    },
  };
}

const unreadable =
  "It happened, and its result cannot be read here: a newer version or an adapter's type wrote it. Do not try it again.";

function reducers({ reduced }: Survey, types: readonly CodecType[]): Record<string, (value: unknown) => unknown> {
  const reducer = (type: CodecType) => (value: unknown) => {
    const found = reduced.get(value as object);
    // In an array, since devalue takes a falsy form for "not mine".
    return found?.type === type && [found.form];
  };
  return Object.fromEntries(types.map((type) => [type.name, reducer(type)]));
}

/**
 * devalue writes the name as it is; the slash keeps it apart from devalue's own.
 *
 * @throws TwiceproofError `INVALID_ARGUMENT`
 */
export function checkTypes(types: readonly CodecType[]): void {
  for (const [index, type] of types.entries())
    if (!/^[\w@.-]+\/[\w./-]+$/.test(type.name) || type.name.startsWith("twiceproof/"))
      throw new TwiceproofError(
        "INVALID_ARGUMENT",
        `\`types[${index}]\`: a codec type's name must look like \`package/Type\`.`,
      );
}

async function smaller(plain: Payload): Promise<Payload> {
  if (Buffer.byteLength(plain.text, "utf8") < minCompressedBytes) return plain;
  const text = (await compress(plain.text)).toString("base64");
  return text.length < Buffer.byteLength(plain.text, "utf8") ? { format: `${plain.format}+zstd`, text } : plain;
}
