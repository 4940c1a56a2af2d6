/**
 * What a store implements. Core calls it; users only construct one.
 *
 * Every method is atomic for each item on its own, and every comparison with a lease uses the store's own clock.
 * A method that takes a list answers item by item, in the same order; core never puts one id twice into a list.
 * A rejected promise says nothing about what happened: core asks again with the same attempt or decision id, which
 * must then tell the truth. The rules themselves are in `machine.ts`; `storeLaws` in `@twiceproof/core/testing` prove them.
 */
export interface Store {
  /** Won, or the record that stands in the way: the refusal and its reason are one answer (promise 12). */
  claim(requests: readonly ClaimRequest[]): Promise<readonly ClaimResult[]>;
  /** Heartbeat. Extends, never shortens. A blocked row answers `busy` and delays no other. */
  renew(renewals: readonly Renewal[]): Promise<readonly Renewed[]>;
  /** The holder records what became of its claim; it may do so late (promise 4). */
  settle(settlements: readonly Settlement[]): Promise<readonly Settled[]>;
  /** The holder gives up without knowing the outcome. From here only a settlement or a verdict may follow (promise 9). */
  abandon(ref: ClaimRef, reason: string): Promise<void>;
  /** Somebody other than the holder ends a doubt, or decides about a lock. Row and history change together or not at all (promise 15). */
  resolve(doubt: DoubtRef, verdict: StoredVerdict, by: Decision): Promise<Resolved>;
  /** Enters the line of a lock, or keeps the place in it; the same ticket asked again tells its place. */
  queue(request: TicketRequest): Promise<Queued>;
  /** Leaves the line. A ticket that is not there has left already. */
  leave(id: string, ticketId: string): Promise<void>;
  /** Who waits for a lock and is alive, first come first. */
  line(id: string): Promise<readonly Ticket[]>;
  /**
   * Optional, and nothing may depend on it: calls `wake` soon after a lock was freed for which somebody waits, with the row
   * as it was left if that is known. Those who wait look by themselves too, a little later. The returned function ends it.
   */
  watch?(id: string, wake: (left?: Left) => void): () => void;
  /** Optional, for speed alone: writers exclude each other, as in SQLite. Core then lists locks too, and divides no list. */
  readonly oneWriter?: boolean;
  /**
   * Optional: for somebody else's transaction in the same database, such as a checkpointer's. It brings a row while this
   * lock is held by this claim, and whoever would take or end it then waits until that transaction is over; a renewal does
   * not. On SQLite the transaction must be an immediate one.
   */
  fenceStatement?(ref: ClaimRef): FenceStatement;
  get(ids: readonly string[]): Promise<readonly (ClaimRecord | null)[]>;
  /** Oldest first, by time of creation and id. */
  list(query: ListQuery): Promise<Page>;
  /** Oldest first. */
  history(id: string): Promise<readonly HistoryEntry[]>;
  /** Removes settled effects, or their results, and nothing else (promise 10). Answers how many; 0 means that none is left. */
  prune(query: PruneQuery): Promise<number>;
  /** Forward-only; several workers at once are fine. */
  migrate(): Promise<void>;
  health(): Promise<Health>;
  /** Closes what the store itself opened, and nothing that the user gave it. */
  close(): Promise<void>;
}

/** `effect`: a lapsed lease is a doubt. `lock`: a lapsed lease is free. Part of the id, so that neither can stand for the other. */
export type ClaimKind = "effect" | "lock";

/** Names one claim of one holder. Every guard compares all three (promise 3). */
export interface ClaimRef {
  /** 64 lower-case hex digits: `claimId(namespace, space, key)`. */
  readonly id: string;
  /** 32 lower-case hex digits, drawn afresh for each claim; a repeated statement knows its own claim by it. */
  readonly attemptId: string;
  /** Grows by one with each new claim of the key: the fencing token. */
  readonly token: number;
}

export interface ClaimRequest {
  readonly id: string;
  readonly attemptId: string;
  readonly namespace: string;
  readonly kind: ClaimKind;
  readonly key: string;
  /** The effect's name; for people and lists. */
  readonly name: string;
  readonly scope: string | null;
  readonly turn: string | null;
  readonly runId: string | null;
  /** `fingerprint(name, input)`; one constant for locks. */
  readonly fingerprint: string;
  /** Who asks, for people: never compared. */
  readonly holder: string;
  readonly leaseMs: number;
  /**
   * The version of the free record that the claimant read, or null when it has read none. A key without a row is granted
   * at once; a free row only to a request that names its version. So a statement that arrives twice, or hours late,
   * finds another version and is answered, not granted (promise 13).
   */
  readonly seen: number | null;
  /** The lock under which this claim is made; null outside of runs. Checked in the same atomic step (promise 14). */
  readonly fence: ClaimRef | null;
  /** Of a lock: the claimant's place in its line, if it has one. Who wins has left the line, in the same atomic step. */
  readonly ticketId?: string | undefined;
}

/**
 * Of a free row. The version is one that it had, never one that it may get: a claim that names it and comes late finds
 * another (promise 13).
 */
export type Left = Pick<ClaimRecord, "version" | "token">;

export type ClaimResult =
  | { readonly answer: "won"; readonly token: number }
  /** Released, or a lapsed lock, of the same fingerprint: ask again and name `record.version`. */
  | { readonly answer: "free"; readonly record: ClaimRecord }
  | { readonly answer: "taken"; readonly record: ClaimRecord }
  /** The lock is free, and somebody who is alive waits before this claimant. `record` is null when nobody ever held it. */
  | { readonly answer: "behind"; readonly record: ClaimRecord | null }
  /** The run no longer holds its lock. `record` is the lock's, null when it has none. */
  | { readonly answer: "fenced"; readonly record: ClaimRecord | null };

/** In the placeholders of its database. */
export interface FenceStatement {
  readonly text: string;
  readonly values: readonly (string | number)[];
}

export interface Renewal extends ClaimRef {
  readonly leaseMs: number;
}

/** `busy`: the row could not be reached in time, ask again. `cancel-requested`: still held, and the holder is asked to stop. */
export type Renewed = "held" | "busy" | "cancel-requested" | "lost";

/** An encoded value. `format` is the codec's; a store keeps both as they are. `text` is well-formed and free of NUL. */
export interface Payload {
  readonly format: string;
  readonly text: string;
}

export interface Settlement extends ClaimRef {
  readonly state: SettledState;
  /** The result, or why it was refused or not executed. Null with `completed`: done, the result is unavailable. */
  readonly payload: Payload | null;
}

export type SettledState = "completed" | "failed" | "released";

/**
 * `disputed`: this `completed` meets a "not done" verdict. The effect is in doubt again, or, when the key is claimed
 * again, the contradiction stands in the history and the new claim is asked to stop; from then on, that claim's own
 * `released` is `disputed` too, and frees nothing (promise 4).
 */
export type Settled = "settled" | "already" | "disputed" | "lost";

/**
 * A place in the line of a lock: first come, first served, by the order in which `queue` put them there. A ticket that is
 * not renewed within its lease is out of the line, and enters again at its end.
 */
export interface TicketRequest {
  /** The lock's. */
  readonly id: string;
  /** 32 lower-case hex digits, drawn afresh for each wait. */
  readonly ticketId: string;
  readonly runId: string | null;
  /** Who waits, for people: never compared. */
  readonly holder: string;
  readonly leaseMs: number;
  /** The most that may wait; whoever is in the line already keeps its place. */
  readonly maxQueue: number;
}

export type Queued =
  /** `ahead`: how many wait before it. `record`: the lock's, as in the same look; null when nobody ever held it. */
  | { readonly answer: "queued"; readonly ahead: number; readonly record: ClaimRecord | null }
  /** As many as may wait do; nothing was entered. */
  | { readonly answer: "full"; readonly depth: number };

/** Times as in a record. */
export interface Ticket {
  readonly ticketId: string;
  readonly runId: string | null;
  readonly holder: string;
  readonly queuedAt: number;
  readonly leaseUntil: number;
  readonly readAt: number;
}

/** A doubt as it was read *before* the evidence was gathered: any later write makes the verdict refused (promise 18). */
export interface DoubtRef {
  readonly id: string;
  readonly token: number;
  readonly version: number;
}

export type StoredVerdict =
  | { readonly state: SettledState; readonly payload: Payload | null }
  /** Opens a `failed` effect again: the only way out of that state. */
  | { readonly state: "reopened" }
  /** Takes a lock from its holder, alive or not: the token grows by one, and nobody has it. `attemptId` is drawn for that token. */
  | { readonly state: "unlocked"; readonly attemptId: string }
  /** Asks the holder of a lock to stop; it holds the lock until it does. */
  | { readonly state: "cancel-requested" };

export interface Decision {
  /** 32 lower-case hex digits. The same decision sent twice answers `already`. */
  readonly decisionId: string;
  readonly who: string;
  readonly why: string;
  readonly evidence: string | null;
}

export type Resolved = "done" | "already" | "refused";

/**
 * `in-doubt` (effects) and `lapsed` (locks) are derived on read from the lease and the store's clock, and never written:
 * there is no sweeper that could race the holder.
 */
export type ClaimState = "claimed" | "in-doubt" | "lapsed" | SettledState;

/** A row. All times are milliseconds since 1970 by the store's clock; durations follow from `readAt`. */
export interface ClaimRecord extends ClaimRef {
  readonly namespace: string;
  readonly kind: ClaimKind;
  readonly key: string;
  readonly name: string;
  readonly scope: string | null;
  readonly turn: string | null;
  readonly runId: string | null;
  readonly fingerprint: string;
  readonly holder: string;
  readonly state: ClaimState;
  /** Every renewal, abandonment, settlement and verdict changes it. */
  readonly version: number;
  readonly leaseMs: number;
  readonly leaseUntil: number;
  readonly createdAt: number;
  readonly claimedAt: number;
  readonly settledAt: number | null;
  readonly readAt: number;
  /** Its holder gave it up: nothing revives it. */
  readonly abandoned: boolean;
  /** A late `completed` contradicted a verdict: only a verdict ends it. */
  readonly disputed: boolean;
  /** Settled by a verdict, not by its holder. */
  readonly byVerdict: boolean;
  readonly cancelRequested: boolean;
  readonly payload: Payload | null;
}

export interface ListQuery {
  readonly namespace: string;
  readonly limit: number;
  readonly kind?: ClaimKind | undefined;
  readonly state?: ClaimState | undefined;
  readonly scope?: string | undefined;
  readonly name?: string | undefined;
  /** `next` of the page before. */
  readonly after?: string | undefined;
}

export interface Page {
  readonly records: readonly ClaimRecord[];
  /** Absent on the last page. */
  readonly next?: string;
}

export interface HistoryEntry {
  readonly at: number;
  readonly token: number;
  readonly attemptId: string | null;
  readonly what: HistoryEvent;
  readonly who: string | null;
  readonly why: string | null;
  readonly evidence: string | null;
  readonly decisionId: string | null;
  readonly payload: Payload | null;
}

/** `late-…`: what a holder said after a verdict had decided otherwise. */
export type HistoryEvent =
  | "abandoned"
  | `verdict-${SettledState}`
  | "reopened"
  | "unlocked"
  | "cancel-requested"
  | `late-${SettledState}`;

export interface PruneQuery {
  readonly namespace: string;
  /** Settled longer ago than this. */
  readonly olderThanMs: number;
  readonly limit: number;
  /**
   * True: only results and reasons are dropped, from the history too. The row stays, and still refuses a second execution;
   * later callers get `EFFECT_RESULT_UNAVAILABLE`. Default false: rows are removed, and their keys are new again.
   */
  readonly keepKeys?: boolean | undefined;
}

export interface Health {
  /** The store's clock, milliseconds since 1970. */
  readonly now: number;
  /** Sentences for an operator: what makes this set-up weaker than it should be. */
  readonly warnings: readonly string[];
}
