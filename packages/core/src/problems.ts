import { type ErrorDetails, type HolderFacts, TwiceproofError } from "./errors.ts";
import { shortRef } from "./id.ts";
import type { ClaimRecord } from "./store.ts";

/** The errors that callers meet. Messages carry a name and a short reference, and nothing else of the claim. */
interface Named {
  readonly id: string;
  readonly name: string;
}

export function inDoubt(
  call: Named,
  details: ErrorDetails & { readonly record?: ClaimRecord | null } = {},
): TwiceproofError {
  const { record, ...rest } = details;
  const ref = shortRef(call.id);
  return new TwiceproofError(
    "EFFECT_IN_DOUBT",
    `The outcome of "${call.name}" is unknown (ref ${ref}). It may have happened. Do not try it again in any form; tell the user that it is being checked.`,
    {
      id: call.id,
      ref,
      help: [
        `Claim ${call.id}${record ? `, token ${record.token}, held by ${record.holder}, claimed ${new Date(record.claimedAt).toISOString()}` : ""}.`,
        "Find out whether it happened, then settle it: tp.doubts.list(), tp.doubts.resolve(doubt, done(…) | doneWithoutResult() | notDone() | refused(…), { who, why }).",
      ].join("\n"),
      ...(record && { holder: holderFacts(record) }),
      ...rest,
    },
  );
}

export function running(call: Named, record: ClaimRecord, cause?: unknown): TwiceproofError {
  const ref = shortRef(call.id);
  return new TwiceproofError(
    "EFFECT_RUNNING",
    `"${call.name}" is still running (ref ${ref}). Do not start another one; what became of it will be known later.`,
    {
      id: call.id,
      ref,
      help: `Claim ${call.id}, held by ${record.holder} since ${new Date(record.claimedAt).toISOString()}.`,
      retryAfterMs: retryAfterMs(record.leaseUntil - record.readAt, 10_000),
      holder: holderFacts(record),
      ...(cause !== undefined && { cause }),
    },
  );
}

export function keyReused(call: Named, record: ClaimRecord): TwiceproofError {
  const ref = shortRef(call.id);
  return new TwiceproofError(
    "EFFECT_KEY_REUSED",
    `The key of this "${call.name}" already stands for ${record.name === call.name ? "another input" : `another effect, "${record.name}"`} (ref ${ref}). Nothing was executed.`,
    {
      id: call.id,
      ref,
      help: `Key ${JSON.stringify(record.key)}, first used ${new Date(record.createdAt).toISOString()}.`,
    },
  );
}

export function refusal(call: Named, why: string, cause?: unknown): TwiceproofError {
  return withWhy(call, "EFFECT_REFUSED", "was refused", why, cause, reopening);
}

export function notExecutedError(call: Named, why: string, cause?: unknown): TwiceproofError {
  return withWhy(
    call,
    "EFFECT_NOT_EXECUTED",
    "was not executed",
    why,
    cause,
    "The key is free: the same call may be made again.",
  );
}

const reopening =
  "It stays refused. To let it run again: const [record] = await tp.store.get([error.id]); await tp.doubts.reopen(record, { who, why }).";

function withWhy(
  call: Named,
  code: "EFFECT_REFUSED" | "EFFECT_NOT_EXECUTED",
  what: string,
  why: string,
  cause: unknown,
  help: string,
): TwiceproofError {
  const ref = shortRef(call.id);
  return new TwiceproofError(code, `"${call.name}" ${what}: ${why} (ref ${ref})`, {
    id: call.id,
    ref,
    help,
    ...(cause !== undefined && { cause }),
  });
}

export function resultUnavailable(call: Named): TwiceproofError {
  const ref = shortRef(call.id);
  return new TwiceproofError(
    "EFFECT_RESULT_UNAVAILABLE",
    `"${call.name}" was done already, and its result was not kept (ref ${ref}). Do not try it again.`,
    {
      id: call.id,
      ref,
      help: 'A result is kept when it is plain data (also Date, Map, Set, bigint, bytes, URL, Error), is not over `maxResultBytes`, and `store` is not "fact". A verdict may also have said that it was done without its result.',
    },
  );
}

export function holderFacts(record: ClaimRecord): HolderFacts {
  const leaseExpiresInMs = record.leaseUntil - record.readAt;
  const live = record.state === "claimed";
  return {
    runId: record.runId,
    state: live ? (record.cancelRequested ? "stopping" : "claimed") : record.kind === "lock" ? "lapsed" : "in-doubt",
    ageMs: record.readAt - record.claimedAt,
    heartbeatAgeMs: Math.max(0, record.leaseMs - leaseExpiresInMs),
    leaseExpiresInMs,
    liveness: live ? "live" : "expired",
  };
}

/** When the lease may be over, but no sooner than a second from now. */
export function retryAfterMs(leaseExpiresInMs: number, atMost: number): number {
  return Math.min(atMost, Math.max(1_000, leaseExpiresInMs));
}

/** The reason of the holder's signal: somebody wants it to stop, and it still holds what it holds. */
export function askedToStop(code: "EFFECT_IN_DOUBT" | "RUN_CANCELLED" | "LOCK_LOST", id: string): TwiceproofError {
  const who = code === "RUN_CANCELLED" ? "This run" : "The holder";
  return new TwiceproofError(code, `${who} was asked to stop.`, { id, ref: shortRef(id) });
}
