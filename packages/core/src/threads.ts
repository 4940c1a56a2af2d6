import { read } from "./claim.ts";
import { type DecidedBy, decisionOf } from "./decision.ts";
import { type HolderFacts, TwiceproofError } from "./errors.ts";
import type { TwiceproofEvent } from "./events.ts";
import { claimId, randomId } from "./id.ts";
import type { Kernel } from "./kernel.ts";
import { holderFacts } from "./problems.ts";
import { nextFacts } from "./problems-lock.ts";
import { reach } from "./reach.ts";
import type { ClaimRecord, Decision, Resolved } from "./store.ts";
import { checkScope } from "./validate.ts";

/** Who works on a thread; `state: "queued"` when nobody does and this run is the next. */
export interface ThreadFacts extends HolderFacts {
  /** Of the thread's lock: for `doubts.history`, where cancels and unlocks stand. */
  readonly id: string;
  /** Of the run that works on it, or did last: what `unlock` names. */
  readonly token: number;
  /** The worker, for people. */
  readonly worker: string;
  /** How many runs wait. */
  readonly queueDepth: number;
}

/** Each names what it means as it was read, so that it cannot hit what came after. */
export interface CancelRequest extends DecidedBy {
  readonly runId: string;
}

export interface UnlockRequest extends DecidedBy {
  readonly token: number;
}

export interface Threads {
  /** Null: nobody works on it, and nobody waits. */
  get(thread: string): Promise<ThreadFacts | null>;
  /**
   * Asks this run to stop: its signal aborts with `RUN_CANCELLED`, within two seconds unless its process stands still. It
   * holds the thread until it has stopped. `already`: it was asked before. `stale`: it does not hold the thread (any more).
   *
   * @throws TwiceproofError `INVALID_ARGUMENT`: also when nobody is named who decides and why
   */
  cancel(thread: string, request: CancelRequest): Promise<"requested" | "already" | "stale">;
  /**
   * Takes the thread from its holder, alive or not: what that run still starts is refused. It does not stop what runs, and
   * says nothing of the run's effects. For operators, when asking did not help. `stale`: another run holds the thread, or none.
   *
   * @throws TwiceproofError `INVALID_ARGUMENT`: also when nobody is named who decides and why
   */
  unlock(thread: string, request: UnlockRequest): Promise<"unlocked" | "already" | "stale">;
}

export function createThreads(kernel: Kernel): Threads {
  const { store, storeTimeoutMs: withinMs } = kernel;

  function idOf(thread: string): string {
    checkScope("thread", thread);
    return claimId(kernel.namespace, "thread", thread);
  }

  return {
    async get(thread) {
      const id = idOf(thread);
      const [record, line] = await Promise.all([read(kernel, id), reach(() => store.line(id), { withinMs })]);
      const [next] = line;
      if (record !== null && isHeld(record) && (record.state === "claimed" || next === undefined))
        return { ...holderFacts(record), id, token: record.token, worker: record.holder, queueDepth: line.length };
      if (next === undefined) return null;
      return { ...nextFacts(next), id, token: record?.token ?? 0, worker: next.holder, queueDepth: line.length };
    },

    async cancel(thread, { runId, ...by }) {
      checkScope("runId", runId);
      const decision = decisionOf("A cancel", by);
      const record = await read(kernel, idOf(thread));
      return record?.runId === runId ? await requestCancel(kernel, record, decision) : "stale";
    },

    async unlock(thread, { token, ...by }) {
      if (!Number.isSafeInteger(token))
        throw new TwiceproofError("INVALID_ARGUMENT", "`token` must be the one that `threads.get` answered.");
      const id = idOf(thread);
      const verdict = { state: "unlocked", attemptId: randomId() } as const;
      const decision = decisionOf("An unlock", by);
      for (;;) {
        const record = await read(kernel, id);
        if (record === null) return "stale";
        // Asked also when the token is another: whether this very decision was made before is the store's to say.
        const { version } = record;
        const resolved = await reach(() => store.resolve({ id, token, version }, verdict, decision), { withinMs });
        if (resolved !== "refused" && record.token === token) tell(kernel, record, "unlocked");
        if (resolved === "done") return "unlocked";
        if (resolved === "already" || isUnlocked(record, token)) return "already";
        if (record.token !== token || !isHeld(record)) return "stale";
      }
    },
  };
}

/**
 * Asks the holder of this very claim to stop: a renewal that comes between is no reason to give up, another holder is.
 * What `interrupt` and `cancel` do.
 */
export async function requestCancel(
  kernel: Kernel,
  holder: ClaimRecord,
  decision: Decision,
): Promise<"requested" | "already" | "stale"> {
  const { id, token } = holder;
  let record: ClaimRecord | null = holder;
  while (record !== null && record.token === token && isHeld(record)) {
    if (record.cancelRequested) return "already";
    const { version } = record;
    const verdict = { state: "cancel-requested" } as const;
    const resolved: Resolved = await reach(() => kernel.store.resolve({ id, token, version }, verdict, decision), {
      withinMs: kernel.storeTimeoutMs,
    });
    if (resolved !== "refused") tell(kernel, record, "cancel-requested");
    if (resolved !== "refused") return resolved === "done" ? "requested" : "already";
    record = await read(kernel, id);
  }
  return "stale";
}

/** A holder in this process hears of it now, and not at its next heartbeat. */
function tell(kernel: Kernel, record: ClaimRecord, type: TwiceproofEvent["type"]): void {
  const { id, name, token, scope, turn, runId } = record;
  kernel.heartbeat.hurry(id);
  kernel.emit({ type, name, id, token, scope, turn, runId });
}

/** Also by one who seems to be dead. */
function isHeld({ state }: ClaimRecord): boolean {
  return state === "claimed" || state === "lapsed";
}

/** By somebody else, and nobody has claimed it since. */
function isUnlocked({ token, state, byVerdict }: ClaimRecord, unlocked: number): boolean {
  return token === unlocked + 1 && state === "released" && byVerdict;
}
