export type Value = Text | Id | number | null;

/** Goes as its UTF-8 bytes, so that neither the connection's character set nor the driver's escaping touches it. */
export interface Text {
  readonly text: string;
  /** MariaDB 10.11 gives a union's column the length of its longest literal modulo 65,536, and cuts the text there: a cast is none. */
  readonly isLong?: boolean;
}

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
  return part === null || typeof part === "number" || "digits" in part || "text" in part;
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

export function bytes(text: string): Text {
  return { text };
}

export function orNull(text: string | null): Text | null {
  return text === null ? null : bytes(text);
}

export function hex(digits: string): Id {
  return { digits };
}

export function isSame(a: Value, b: Value): boolean {
  if (a === null || b === null || typeof a === "number" || typeof b === "number") return a === b;
  return "text" in a ? "text" in b && a.text === b.text : "digits" in b && a.digits === b.digits;
}

export function withPlaceholders({ texts, values }: Statement): string {
  return interleave(texts, values, (value) => (isId(value) ? "unhex(?)" : "?"));
}

export function parameters({ values }: Statement): readonly (Buffer | string | number | null)[] {
  return values.map((value) => {
    if (value === null || typeof value === "number") return value;
    return "digits" in value ? value.digits : Buffer.from(value.text, "utf8");
  });
}

/**
 * With every value written out. Hexadecimal literals hold nothing that could end them, in any `sql_mode`: the driver's own
 * escaping puts a backslash before a quote, and with NO_BACKSLASH_ESCAPES that ends the string.
 */
export function withLiterals({ texts, values }: Statement): string {
  return interleave(texts, values, literal);
}

/** Rows for `values`, written out at once: as a statement for each they took most of the time of a list's text. */
export function written(rows: readonly (readonly Value[])[]): Statement {
  return raw(rows.map((row) => `/*!50701 row */ (${row.map(literal).join(", ")})`).join(",\n"));
}

const noHexDigit = /[^0-9a-f]/;

function literal(value: Value): string {
  if (value === null) return "null";
  if (typeof value !== "number") return "text" in value ? textLiteral(value) : `x'${plainHex(value)}'`;
  if (!Number.isSafeInteger(value)) throw new TypeError("only whole numbers are written into SQL");
  return String(value);
}

function textLiteral({ text, isLong = false }: Text): string {
  const written = `x'${Buffer.from(text, "utf8").toString("hex")}'`;
  return isLong ? `cast(${written} as binary)` : written;
}

function plainHex({ digits }: Id): string {
  const isPlain = digits.length % 2 === 0 && !noHexDigit.test(digits);
  return isPlain ? digits : Buffer.from(digits, "hex").toString("hex");
}

function isId(value: Value): value is Id {
  return typeof value === "object" && value !== null && "digits" in value;
}

function interleave(texts: readonly string[], values: readonly Value[], show: (value: Value) => string): string {
  return texts.reduce((text, next, index) => text + show(values[index - 1] ?? null) + next);
}
