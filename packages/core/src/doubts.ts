import { read } from "./claim.ts";
import { answerOf, type Verdict } from "./classify.ts";
import { type DecidedBy, decisionOf } from "./decision.ts";
import { TwiceproofError } from "./errors.ts";
import { idempotencyKey, shortRef } from "./id.ts";
import type { Kernel } from "./kernel.ts";
import { reach } from "./reach.ts";
import type { ClaimRecord, DoubtRef, HistoryEntry, StoredVerdict } from "./store.ts";
import { checkCount, checkId, checkOptions } from "./validate.ts";
import { verdictOf } from "./verdict.ts";

/** An effect that started and whose outcome nobody knows. A verdict fits only the doubt as it was read here. */
export interface Doubt extends DoubtRef {
  /** Eight hex digits; what error messages call `ref`. */
  readonly ref: string;
  readonly name: string;
  readonly key: string;
  readonly scope: string | null;
  readonly turn: string | null;
  readonly runId: string | null;
  readonly holder: string;
  readonly claimedAt: Date;
  /** What the body was given for the outside API: look for the effect there by it. */
  readonly idempotencyKey: string;
  /** A late result contradicts what was decided or done before: see the history. */
  readonly disputed: boolean;
}

export interface DoubtQuery {
  readonly name?: string | undefined;
  readonly scope?: string | undefined;
  /** Default 100. */
  readonly limit?: number | undefined;
  /** `next` of the page before. */
  readonly after?: string | undefined;
}

export interface DoubtEvent extends Omit<HistoryEntry, "at" | "payload" | "attemptId"> {
  readonly at: Date;
  /** The result or reason that was decided or said. Undefined when there is none, or it cannot be read here. */
  readonly result: unknown;
}

/**
 * `applied`: it stands now. `already`: this very decision was applied before. `stale`: nothing was changed, because the
 * claim was renewed, settled or decided since it was read; read it again.
 */
export type VerdictOutcome = "applied" | "already" | "stale";

/** For operators and their tools; never to be handed to an agent. */
export interface Doubts {
  /** Oldest first. */
  list(query?: DoubtQuery): Promise<{ readonly doubts: readonly Doubt[]; readonly next?: string }>;
  /** One doubt, by its id or by the `ref` of an error or a message; null when there is none (any more). */
  get(idOrRef: string): Promise<Doubt | null>;
  /**
   * Ends a doubt as it was read by `list` or `get`.
   *
   * @throws TwiceproofError `INVALID_ARGUMENT`: no verdict, or nobody named who decides and why
   */
  resolve(doubt: DoubtRef, verdict: Verdict, by: DecidedBy): Promise<VerdictOutcome>;
  /** Frees the key of an effect that was refused for good. `token` and `version` as read. */
  reopen(failed: DoubtRef, by: DecidedBy): Promise<VerdictOutcome>;
  /** Verdicts, abandonments and late results, oldest first. */
  history(id: string): Promise<readonly DoubtEvent[]>;
}

const queryNames: Record<keyof DoubtQuery, true> = { name: true, scope: true, limit: true, after: true };

export function createDoubts(kernel: Kernel): Doubts {
  const within = { withinMs: kernel.storeTimeoutMs };
  const { store, namespace } = kernel;

  async function decide(doubt: DoubtRef, verdict: StoredVerdict, by: DecidedBy): Promise<VerdictOutcome> {
    if (!isRef(doubt))
      throw new TwiceproofError(
        "INVALID_ARGUMENT",
        "Give the doubt itself, as `doubts.list()` or `doubts.get()` answered it.",
      );
    const decision = decisionOf("A verdict", by);
    if ((await own(doubt.id)) === null) return "stale";
    const resolved = await reach(() => store.resolve(doubt, verdict, decision), within);
    return resolved === "done" ? "applied" : resolved === "refused" ? "stale" : resolved;
  }

  /** Another namespace's claims are none of ours, also for those who know an id. */
  async function own(id: string): Promise<ClaimRecord | null> {
    const record = await read(kernel, id);
    return record?.namespace === namespace ? record : null;
  }

  async function find(ref: string): Promise<Doubt | null> {
    let after: string | undefined;
    do {
      const page = await list({ after });
      const found = page.doubts.find(({ id }) => id.startsWith(ref));
      if (found !== undefined) return found;
      after = page.next;
    } while (after !== undefined);
    return null;
  }

  const list: Doubts["list"] = async (given = {}) => {
    // A misspelt filter would list all doubts, and a loop would decide them.
    checkOptions("doubts.list", given, queryNames);
    const { limit = 100, ...query } = given;
    checkCount("limit", limit);
    const page = await reach(
      () => store.list({ ...query, limit, namespace, kind: "effect", state: "in-doubt" }),
      within,
    );
    return { doubts: page.records.map(toDoubt), ...(page.next !== undefined && { next: page.next }) };
  };

  return {
    list,
    async get(idOrRef) {
      if (!/^[0-9a-f]{8,64}$/.test(String(idOrRef)))
        throw new TwiceproofError("INVALID_ARGUMENT", "Give a doubt's id, or the `ref` of an error.");
      if (idOrRef.length < 64) return await find(idOrRef);
      const record = await own(idOrRef);
      return record?.state === "in-doubt" ? toDoubt(record) : null;
    },
    async resolve(doubt, verdict, by) {
      const answer = answerOf(verdict);
      if (answer === undefined || answer.answer === "unknown")
        throw new TwiceproofError(
          "INVALID_ARGUMENT",
          "A verdict is one of done(result), doneWithoutResult(), notDone() and refused(why).",
        );
      const stored = await verdictOf(kernel.codec, answer);
      if (answer.answer === "done" && stored.state === "completed" && stored.payload === null)
        throw new TwiceproofError(
          "INVALID_ARGUMENT",
          "The result of `done` cannot be recorded: give plain data, or doneWithoutResult().",
        );
      return await decide(doubt, stored, by);
    },
    reopen: (failed, by) => decide(failed, { state: "reopened" }, by),
    async history(id) {
      checkId(id);
      if ((await own(id)) === null) return [];
      const entries = await reach(() => store.history(id), within);
      return await Promise.all(
        entries.map(async ({ at, payload, attemptId: _, ...entry }) => ({
          ...entry,
          at: new Date(at),
          result: payload === null ? undefined : await kernel.codec.decode(payload).catch(() => undefined),
        })),
      );
    },
  };
}

function isRef(doubt: unknown): doubt is DoubtRef {
  const { id, token, version } = (doubt ?? {}) as Partial<DoubtRef>;
  return /^[0-9a-f]{64}$/.test(String(id)) && Number.isSafeInteger(token) && Number.isSafeInteger(version);
}

function toDoubt(record: ClaimRecord): Doubt {
  const { id, token, version, name, key, scope, turn, runId, holder } = record;
  const disputed = record.disputed || record.cancelRequested;
  const claimedAt = new Date(record.claimedAt);
  return {
    id,
    token,
    version,
    ref: shortRef(id),
    idempotencyKey: idempotencyKey(id),
    name,
    key,
    scope,
    turn,
    runId,
    holder,
    claimedAt,
    disputed,
  };
}
