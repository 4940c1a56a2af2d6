import { TwiceproofError } from "@twiceproof/core/store";

const plain = /^[A-Za-z_][A-Za-z0-9_]{0,62}$/;
/** Not `public` either: there an application's own `claims` or `history` would pass for ours. */
const reserved = /^(pg_.*|information_schema|public)$/i;

/**
 * The schema's name, quoted for SQL.
 *
 * @throws TwiceproofError `INVALID_ARGUMENT`
 */
export function quotedSchema(schema: unknown): string {
  if (typeof schema === "string" && plain.test(schema) && !reserved.test(schema)) return `"${schema}"`;
  throw new TwiceproofError(
    "INVALID_ARGUMENT",
    "`schema` must be letters, digits and underscores, 63 at most, no digit first, and of the store's own: not `public`, `information_schema` or `pg_…`.",
  );
}
