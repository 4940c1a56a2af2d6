import { type ErrorDetails, type HolderFacts, TwiceproofError } from "./errors.ts";
import { shortRef } from "./id.ts";
import { isFree } from "./machine.ts";
import { holderFacts, retryAfterMs } from "./problems.ts";
import type { ClaimRecord, Ticket } from "./store.ts";

/** How long a waiter that is silent keeps its place: a process that dies holds up those behind it no longer. */
export const ticketLeaseMs = 5_000;

/** What a claimant of a lock met, as in the last look at it. */
export interface Met {
  /** `busy`: it does not wait. `full`: it may not wait. `timeout`: it waited in vain. */
  readonly because: "busy" | "full" | "timeout";
  readonly id: string;
  readonly record: ClaimRecord | null;
  /** Who waits, first come first, without the claimant. */
  readonly line: readonly Ticket[];
}

/** Before anything started under it. `help` names the run: its message may reach a page. */
export function runLost(runId: string | null): TwiceproofError {
  return new TwiceproofError(
    "RUN_LOST",
    "This run no longer holds its thread: it is over, or another run took it. Nothing was started.",
    { help: `Run ${runId}.` },
  );
}

/** While its body was working. */
export function runOvertaken(runId: string, details: ErrorDetails = {}): TwiceproofError {
  return new TwiceproofError(
    "RUN_LOST",
    "This run lost its thread while it was working: another run may have it now. Do not count its result as stored.",
    { help: `Run ${runId}.`, ...details },
  );
}

/** Its body returned, and nobody who asks for this run again would be told. */
export function runUnrecorded(runId: string, details: ErrorDetails): TwiceproofError {
  return new TwiceproofError(
    "RUN_LOST",
    "What this run returned could not be recorded. Do not count its result as stored.",
    { help: `Run ${runId}. The same run may be made again; its effects are on record.`, ...details },
  );
}

export function runFinished(runId: string, cause?: unknown): TwiceproofError {
  return new TwiceproofError(
    "RUN_FINISHED",
    "This run is over already, and what it returned was not kept. Nothing was started.",
    {
      help: `Run ${runId}. An outcome is kept when it is plain data (also Date, Map, Set, bigint, bytes, URL, Error) and not over \`maxResultBytes\`.`,
      ...(cause !== undefined && { cause }),
    },
  );
}

export function lockLost(key: string, details: ErrorDetails = {}): TwiceproofError {
  return new TwiceproofError(
    "LOCK_LOST",
    "The lock was lost while its holder was working: somebody else may hold it now.",
    { help: `Lock ${JSON.stringify(key)}.`, ...details },
  );
}

export function threadBusy(met: Met, runId: string): TwiceproofError {
  const facts = lockFacts(met);
  if (facts.holder?.runId === runId)
    return new TwiceproofError("RUN_IN_PROGRESS", "This run is in progress already.", facts);
  switch (met.because) {
    case "busy": {
      const queued = facts.holder?.state === "queued";
      return new TwiceproofError("THREAD_BUSY", `Another run is ${queued ? "next" : "working"} on this thread.`, facts);
    }
    case "full":
      return new TwiceproofError("THREAD_QUEUE_FULL", "As many runs as may wait for this thread do.", facts);
    case "timeout":
      return new TwiceproofError("THREAD_WAIT_TIMEOUT", "This thread did not become free in time.", facts);
  }
}

/** What `threads.get` tells of a thread. */
interface HeldFacts extends HolderFacts {
  readonly id: string;
  readonly worker: string;
  readonly queueDepth: number;
}

/** For what writes from outside of all runs while one works: it was looked for, and not waited for. `advice`: for the operator. */
export function threadHeld(facts: HeldFacts, advice: string): TwiceproofError {
  const { id, worker, queueDepth, runId, state, ageMs, heartbeatAgeMs, leaseExpiresInMs, liveness } = facts;
  return new TwiceproofError("THREAD_BUSY", "Another run is working on this thread.", {
    id,
    ref: shortRef(id),
    queueDepth,
    retryAfterMs: retryAfterMs(leaseExpiresInMs, 5_000),
    holder: { runId, state, ageMs, heartbeatAgeMs, leaseExpiresInMs, liveness },
    help: `Held by run ${runId} on ${worker}. ${advice}`,
  });
}

export function lockBusy(key: string, met: Met): TwiceproofError {
  const facts = lockFacts(met);
  const help = `Lock ${JSON.stringify(key)}. ${facts.help}`;
  return new TwiceproofError("LOCK_BUSY", "Somebody else holds this lock.", { ...facts, help });
}

function lockFacts({ id, record, line }: Met): ErrorDetails {
  const [next] = line;
  const held = record === null || isFree(record) ? undefined : record;
  const holder = held !== undefined ? holderFacts(held) : next && nextFacts(next);
  const who = held?.holder ?? next?.holder;
  return {
    id,
    ref: shortRef(id),
    queueDepth: line.length,
    retryAfterMs: held === undefined ? 1_000 : retryAfterMs(held.leaseUntil - held.readAt, 5_000),
    ...(holder && { holder, help: `${held ? "Held" : "Next"} by run ${holder.runId} on ${who}.` }),
  };
}

/** Nobody holds it, and the first in its line is about to. */
export function nextFacts({ runId, queuedAt, leaseUntil, readAt }: Ticket): HolderFacts {
  const leaseExpiresInMs = leaseUntil - readAt;
  return {
    runId,
    state: "queued",
    ageMs: readAt - queuedAt,
    heartbeatAgeMs: Math.max(0, ticketLeaseMs - leaseExpiresInMs),
    leaseExpiresInMs,
    liveness: "queued",
  };
}
