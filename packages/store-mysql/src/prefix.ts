import { TwiceproofError } from "@twiceproof/core/store";
import { raw, type Statement } from "./statement.ts";

export interface MysqlStoreOptions {
  /** Of the names of the four tables; `twiceproof_` by default. One to 32 letters, digits and underscores. */
  readonly prefix?: string;
}

/** Quoted with back-ticks, which no `sql_mode` takes for anything else. */
export interface Tables {
  readonly claims: Statement;
  readonly history: Statement;
  readonly line: Statement;
  readonly schema: Statement;
}

/** @throws TwiceproofError `INVALID_ARGUMENT`: a prefix becomes part of the SQL, so nothing but names passes. */
export function tablesOf({ prefix = "twiceproof_" }: MysqlStoreOptions): Tables {
  if (typeof prefix !== "string" || !/^[A-Za-z_][A-Za-z0-9_]{0,31}$/.test(prefix))
    throw new TwiceproofError(
      "INVALID_ARGUMENT",
      "`prefix` must be 1 to 32 ASCII letters, digits and underscores, and begin with no digit.",
    );
  const named = (name: string): Statement => raw(`\`${prefix}${name}\``);
  return { claims: named("claims"), history: named("history"), line: named("line"), schema: named("schema") };
}
