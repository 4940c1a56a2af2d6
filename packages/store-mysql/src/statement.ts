/** Text goes as its UTF-8 bytes, so that neither the connection's character set nor the driver's escaping touches it. */
export type Value = Buffer | Id | number | null;

/** Goes as text: MySQL shows parameters in `information_schema.innodb_trx`, and that fails for everybody on bytes that are no UTF-8. */
export interface Id {
  readonly digits: string;
}

/** `texts` has one more than `values`, which stand between them. */
export interface Statement {
  readonly texts: readonly string[];
  readonly values: readonly Value[];
  /** Its text differs from call to call: not worth preparing. */
  readonly varies?: boolean;
}

/** A statement or a part of one. Strings are not accepted: text has to be said to be a value (`bytes`) or SQL (`raw`). */
export function sql(texts: readonly string[], ...parts: readonly (Value | Statement)[]): Statement {
  const all: string[] = [texts[0] ?? ""];
  const values: Value[] = [];
  const append = (text: string): void => {
    all[all.length - 1] += text;
  };
  for (const [index, part] of parts.entries()) {
    if (isValue(part)) {
      values.push(part);
      all.push("");
    } else {
      append(part.texts[0] ?? "");
      all.push(...part.texts.slice(1));
      values.push(...part.values);
    }
    append(texts[index + 1] ?? "");
  }
  return { texts: all, values };
}

function isValue(part: Value | Statement): part is Value {
  return part === null || typeof part === "number" || Buffer.isBuffer(part) || "digits" in part;
}

/** SQL that this package wrote itself. */
export function raw(text: string): Statement {
  return { texts: [text], values: [] };
}

export function join(statements: readonly Statement[], separator: string): Statement {
  const texts: string[] = [];
  const values: Value[] = [];
  for (const [index, statement] of statements.entries()) {
    const [first = "", ...rest] = statement.texts;
    if (index === 0) texts.push(first);
    else texts.push(texts.pop() + separator + first);
    for (const text of rest) texts.push(text);
    for (const value of statement.values) values.push(value);
  }
  return { texts: texts.length > 0 ? texts : [""], values };
}

export function varying(statement: Statement): Statement {
  return { ...statement, varies: true };
}

export function bytes(text: string): Buffer {
  return Buffer.from(text, "utf8");
}

export function orNull(text: string | null): Buffer | null {
  return text === null ? null : bytes(text);
}

export function hex(digits: string): Id {
  return { digits };
}

export function withPlaceholders({ texts, values }: Statement): string {
  return interleave(texts, values, (value) => (isId(value) ? "unhex(?)" : "?"));
}

export function parameters({ values }: Statement): readonly (Buffer | string | number | null)[] {
  return values.map((value) => (isId(value) ? value.digits : value));
}

/**
 * With every value written out. Hexadecimal literals hold nothing that could end them, in any `sql_mode`: the driver's own
 * escaping puts a backslash before a quote, and with NO_BACKSLASH_ESCAPES that ends the string.
 */
export function withLiterals({ texts, values }: Statement): string {
  return interleave(texts, values, literal);
}

function literal(value: Value): string {
  if (value === null) return "null";
  if (isId(value)) return `x'${Buffer.from(value.digits, "hex").toString("hex")}'`;
  if (typeof value !== "number") return `x'${value.toString("hex")}'`;
  if (!Number.isSafeInteger(value)) throw new TypeError("only whole numbers are written into SQL");
  return String(value);
}

function isId(value: Value): value is Id {
  return typeof value === "object" && value !== null && "digits" in value;
}

function interleave(texts: readonly string[], values: readonly Value[], show: (value: Value) => string): string {
  return texts.reduce((text, next, index) => text + show(values[index - 1] ?? null) + next);
}
