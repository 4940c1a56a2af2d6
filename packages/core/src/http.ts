import { type ErrorCode, findTwiceproofError, type TwiceproofError } from "./errors.ts";

export interface ErrorResponseOptions {
  /** False for callers who may not know of others' runs: the holder's facts and ids are left out. Default true. */
  readonly holder?: boolean | undefined;
}

/**
 * The answer to an HTTP caller whose call or run was refused: 409, or 503 when the store or this worker cannot
 * serve, or 500 when the application's own code is at fault; JSON, with `Retry-After`. Undefined for an error that is not ours. It never tells a worker's
 * name, an input, a key or a stack; a run's id stands in it only as far as `holder` allows.
 */
export function errorResponse(error: unknown, options: ErrorResponseOptions = {}): Response | undefined {
  const ours = findTwiceproofError(error);
  if (ours === undefined) return undefined;
  const { retryAfterMs } = ours;
  return Response.json(bodyOf(ours, options.holder ?? true), {
    status: statusOf(ours),
    headers: {
      "cache-control": "no-store",
      ...(retryAfterMs !== undefined && { "retry-after": String(Math.ceil(retryAfterMs / 1_000)) }),
    },
  });
}

function bodyOf({ code, message, ref, retryAfterMs, holder }: TwiceproofError, withHolder: boolean): object {
  return {
    code,
    message: code.startsWith("STORE_") ? "The store cannot be used just now." : message,
    ...(ref !== undefined && { ref }),
    ...(retryAfterMs !== undefined && { retryAfterMs }),
    ...(withHolder && holder !== undefined && { holder }),
  };
}

/** Faults of the application's own code: no caller can mend them. */
const bugs: readonly ErrorCode[] = ["INVALID_ARGUMENT", "IDENTITY_MISSING", "TOOL_UNCLASSIFIED", "WAITS_FOR_ITSELF"];

function statusOf({ code, status }: TwiceproofError): number {
  if (code.startsWith("STORE_") || code === "CLOSED") return 503;
  return bugs.includes(code) ? 500 : status;
}
