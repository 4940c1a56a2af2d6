import { TwiceproofError } from "./errors.ts";
import type { ClaimRecord, Page } from "./store.ts";

/** Where a page ended: lists are ordered by time of creation and id. */
export interface Place {
  readonly createdAt: number;
  readonly id: string;
}

/** @throws TwiceproofError `INVALID_ARGUMENT`: it is not `next` of a page */
export function placeOf(after: string | undefined): Place {
  if (after === undefined) return { createdAt: -1, id: "" };
  const [, at, id] = /^(\d{1,15}):([0-9a-f]{64})$/.exec(after) ?? [];
  if (at === undefined || id === undefined)
    throw new TwiceproofError("INVALID_ARGUMENT", "`after` must be `next` of the page before.");
  return { createdAt: Number(at), id };
}

/** `found`: what follows the place, one more than asked for if there is more. */
export function pageOf(found: readonly ClaimRecord[], limit: number): Page {
  const records = found.slice(0, limit);
  const last = records.at(-1);
  return last === undefined || found.length === records.length
    ? { records }
    : { records, next: `${last.createdAt}:${last.id}` };
}
