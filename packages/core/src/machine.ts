import type {
  ClaimRecord,
  ClaimRequest,
  ClaimState,
  Decision,
  DoubtRef,
  HistoryEntry,
  HistoryEvent,
  Payload,
  Settled,
  SettledState,
  Settlement,
  StoredVerdict,
} from "./store.ts";

/**
 * The state machine, as functions of one record. The memory store runs on them alone; an SQL store decides its hot
 * path (claim, renew, a settlement that meets its own claim) in SQL, and asks here about the rest, with the row locked.
 */

/** What a store keeps; `ClaimState` is derived from it. */
export type StoredState = "claimed" | SettledState;

export function deriveState(
  row: Pick<ClaimRecord, "kind" | "abandoned" | "leaseUntil"> & { readonly stored: StoredState },
  now: number,
): ClaimState {
  if (row.stored !== "claimed") return row.stored;
  if (!row.abandoned && row.leaseUntil > now) return "claimed";
  return row.kind === "effect" ? "in-doubt" : "lapsed";
}

/** Free for a new claim that names this record's version. */
export function isFree(record: Pick<ClaimRecord, "state">): boolean {
  return record.state === "released" || record.state === "lapsed";
}

/** Held by this attempt, alive or lapsed, and not given up. */
function isHeldBy(record: ClaimRecord, ref: { readonly attemptId: string; readonly token?: number }): boolean {
  return (
    record.attemptId === ref.attemptId &&
    (ref.token === undefined || record.token === ref.token) &&
    !record.abandoned &&
    (record.state === "claimed" || record.state === "in-doubt" || record.state === "lapsed")
  );
}

/** `grant`: insert, or overwrite with token and version one higher, if the fence holds too. */
export function judgeClaim(record: ClaimRecord | null, request: ClaimRequest): "grant" | "won" | "free" | "taken" {
  if (record === null) return "grant";
  if (record.attemptId === request.attemptId) return isHeldBy(record, request) ? "won" : "taken";
  if (!isFree(record) || record.fingerprint !== request.fingerprint) return "taken";
  return request.seen === record.version ? "grant" : "free";
}

/** Promise 14: this very claim of the lock, not given up; a lapsed lease that nobody took over still counts. */
export function holdsFence(lock: ClaimRecord | null, fence: ClaimRequest["fence"]): boolean {
  return fence === null || (lock !== null && lock.kind === "lock" && isHeldBy(lock, fence));
}

export function judgeRenewal(
  record: ClaimRecord | null,
  ref: { readonly attemptId: string; readonly token: number },
): "held" | "cancel-requested" | "lost" {
  if (record === null || !isHeldBy(record, ref)) return "lost";
  return record.cancelRequested ? "cancel-requested" : "held";
}

/** What to change on the row (version + 1 with any change) and what to add to its history, in one atomic step. */
export interface Judged<Answer> {
  readonly answer: Answer;
  readonly change?:
    | {
        readonly to: "settled";
        readonly state: SettledState;
        readonly payload: Payload | null;
        readonly byVerdict: boolean;
      }
    /** Back in doubt, until a verdict: claimed, abandoned, disputed, settled by nobody. */
    | { readonly to: "disputed" }
    /** The claim that stands there now is asked to stop. */
    | { readonly to: "cancel-requested" }
    /** Released under the next token, which belongs to this attempt id and so to nobody. */
    | { readonly to: "unlocked"; readonly attemptId: string };
  readonly history?: HistoryEvent;
}

/** `recorded`: whether the history holds this attempt's `late-…` entry for this state, so that a repeat adds none. */
export function judgeSettlement(
  record: ClaimRecord | null,
  settlement: Settlement,
  recorded: boolean,
): Judged<Settled> {
  if (record === null) return { answer: "lost" };
  const { state, payload } = settlement;
  const late = recorded || record.kind === "lock" ? {} : ({ history: `late-${state}` } as const);
  if (record.attemptId !== settlement.attemptId || record.token !== settlement.token) {
    const contradicts = record.kind === "effect" && state === "completed" && settlement.token < record.token;
    if (!contradicts) return { answer: "lost" };
    return { answer: "disputed", ...late, ...(!recorded && contradiction(record)) };
  }
  // Asked to stop because an earlier attempt did it: that this one did not is no reason to free the key.
  const freesNothing = state === "released" && record.kind === "effect" && record.cancelRequested;
  if (record.disputed && isOpen(record)) return { answer: state === "completed" || freesNothing ? "disputed" : "lost" };
  if (isOpen(record) && freesNothing) return { answer: "disputed", change: { to: "disputed" } };
  if (isOpen(record)) return { answer: "settled", change: { to: "settled", state, payload, byVerdict: false } };
  if (record.state === state && samePayload(record.payload, payload)) return { answer: "already" };
  if (!record.byVerdict) return { answer: "lost" };
  if (state === "completed" && record.state !== "completed") {
    // Said before: that dispute was raised, and ended since by a verdict that knew of it.
    if (recorded) return { answer: "disputed" };
    return { answer: "disputed", change: { to: "disputed" }, ...late };
  }
  return { answer: record.state === state && state !== "completed" ? "already" : "lost", ...late };
}

/**
 * An earlier attempt did it after all: a free key is shut, and a claim that is open is asked to stop. One that failed is
 * marked, so that a reopening that was decided without this knowledge finds another version.
 */
function contradiction(record: ClaimRecord): Pick<Judged<Settled>, "change"> {
  if (record.state === "released") return { change: { to: "disputed" } };
  return record.state === "completed" ? {} : { change: { to: "cancel-requested" } };
}

/** A decision as the history knows it. */
export type Decided = Pick<HistoryEntry, "what" | "token" | "payload">;

/** `decided`: what the history says that this decision id decided, null when it is not there. */
export function judgeVerdict(
  record: ClaimRecord | null,
  doubt: DoubtRef,
  verdict: StoredVerdict,
  decided: Decided | null,
): Judged<"done" | "already" | "refused"> {
  const event = verdictEvent(verdict);
  if (decided !== null) {
    const same =
      decided.what === event && decided.token === doubt.token && samePayload(decided.payload, payloadOf(verdict));
    return { answer: same ? "already" : "refused" };
  }
  const fits = record !== null && record.token === doubt.token && record.version === doubt.version;
  const change = fits ? verdictChange(record, verdict) : undefined;
  return change === undefined ? { answer: "refused" } : { answer: "done", change, history: event };
}

/** Undefined: this verdict is none of such a record. */
function verdictChange(record: ClaimRecord, verdict: StoredVerdict): Judged<unknown>["change"] {
  switch (verdict.state) {
    case "unlocked":
      return isHeldLock(record) ? { to: "unlocked", attemptId: verdict.attemptId } : undefined;
    case "cancel-requested":
      return isHeldLock(record) ? { to: "cancel-requested" } : undefined;
    case "reopened": {
      if (record.kind !== "effect" || record.state !== "failed") return undefined;
      return { to: "settled", state: "released", payload: null, byVerdict: true };
    }
    case "completed":
    case "failed":
    case "released":
      if (record.kind !== "effect" || record.state !== "in-doubt") return undefined;
      return { to: "settled", ...verdict, byVerdict: true };
  }
}

/** Also by one who seems to be dead. */
function isHeldLock(record: ClaimRecord): boolean {
  return record.kind === "lock" && (record.state === "claimed" || record.state === "lapsed");
}

export function verdictEvent({ state }: StoredVerdict): HistoryEvent {
  switch (state) {
    case "reopened":
    case "unlocked":
    case "cancel-requested":
      return state;
    case "completed":
    case "failed":
    case "released":
      return `verdict-${state}`;
  }
}

function payloadOf(verdict: StoredVerdict): Payload | null {
  return "payload" in verdict ? verdict.payload : null;
}

/** A decision as a history entry lacks only `at`, `token` and a null `attemptId`; every store writes the same one. */
export function decisionEntry(verdict: StoredVerdict, by: Decision): Omit<HistoryEntry, "at" | "token" | "attemptId"> {
  return {
    what: verdictEvent(verdict),
    who: by.who,
    why: by.why,
    evidence: by.evidence,
    decisionId: by.decisionId,
    payload: payloadOf(verdict),
  };
}

function isOpen(record: ClaimRecord): boolean {
  return record.state === "claimed" || record.state === "in-doubt" || record.state === "lapsed";
}

function samePayload(a: Payload | null, b: Payload | null): boolean {
  return a?.format === b?.format && a?.text === b?.text;
}
