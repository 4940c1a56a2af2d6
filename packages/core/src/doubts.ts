import { type Answer, answerOf } from "./classify.ts";
import { TwiceproofError } from "./errors.ts";
import { randomId, shortRef } from "./id.ts";
import type { Kernel } from "./kernel.ts";
import { reach } from "./reach.ts";
import type { ClaimRecord, DoubtRef, HistoryEntry, Resolved, StoredVerdict } from "./store.ts";
import { checkCount, checkId, checkNote } from "./validate.ts";
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
  /** A late result contradicts an earlier verdict: see the history. */
  readonly disputed: boolean;
}

export interface DoubtQuery {
  readonly name?: string;
  readonly scope?: string;
  /** Default 100. */
  readonly limit?: number;
  /** `next` of the page before. */
  readonly after?: string;
}

/** Who decides, and on what grounds: all of it is kept. */
export interface Decided {
  readonly who: string;
  readonly why: string;
  readonly evidence?: string;
  /** 32 lower-case hex digits; give one to make a repeated request answer `already`. Drawn afresh by default. */
  readonly decisionId?: string;
}

/** For operators and their tools; never to be handed to an agent. */
export interface Doubts {
  /** Oldest first. */
  list(query?: DoubtQuery): Promise<{ readonly doubts: readonly Doubt[]; readonly next?: string }>;
  /** One doubt by its id; null when there is none (any more). */
  get(id: string): Promise<Doubt | null>;
  /**
   * `refused`: the claim was renewed, settled or decided since the doubt was read. Read it again.
   *
   * @throws TwiceproofError `INVALID_ARGUMENT`: no verdict, or nobody named who decides and why
   */
  resolve(doubt: DoubtRef, verdict: Exclude<Answer, { answer: "unknown" }>, by: Decided): Promise<Resolved>;
  /** Frees the key of an effect that was refused for good. `token` and `version` as read. */
  reopen(failed: DoubtRef, by: Decided): Promise<Resolved>;
  /** Verdicts, abandonments and late results, oldest first. */
  history(id: string): Promise<readonly HistoryEntry[]>;
}

export function createDoubts(kernel: Kernel): Doubts {
  const within = { withinMs: kernel.storeTimeoutMs };
  const { store, namespace } = kernel;

  async function decide(doubt: DoubtRef, verdict: StoredVerdict, by: Decided): Promise<Resolved> {
    checkId(doubt?.id);
    checkCount("token", doubt.token);
    checkCount("version", doubt.version);
    for (const field of ["who", "why"] as const)
      if (typeof by?.[field] !== "string" || by[field].trim() === "")
        throw new TwiceproofError("INVALID_ARGUMENT", `A verdict needs \`${field}\`: it is kept in the history.`);
    const { decisionId = randomId(), who, why, evidence = null } = by;
    checkNote("who", who);
    checkNote("why", why);
    if (evidence !== null) checkNote("evidence", evidence);
    if (typeof decisionId !== "string" || !/^[0-9a-f]{32}$/.test(decisionId))
      throw new TwiceproofError("INVALID_ARGUMENT", "`decisionId` must be 32 lower-case hex digits.");
    return await reach(() => store.resolve(doubt, verdict, { decisionId, who, why, evidence }), within);
  }

  return {
    async list({ limit = 100, ...query } = {}) {
      checkCount("limit", limit);
      const page = await reach(
        () => store.list({ ...query, limit, namespace, kind: "effect", state: "in-doubt" }),
        within,
      );
      return { doubts: page.records.map(toDoubt), ...(page.next !== undefined && { next: page.next }) };
    },
    async get(id) {
      checkId(id);
      const [record] = await reach(() => store.get([id]), within);
      return record?.state === "in-doubt" ? toDoubt(record) : null;
    },
    async resolve(doubt, verdict, by) {
      const answer = answerOf(verdict);
      if (answer === undefined || answer.answer === "unknown")
        throw new TwiceproofError(
          "INVALID_ARGUMENT",
          "A verdict is one of done(result), doneWithoutResult(), notDone() and refused(why).",
        );
      return await decide(doubt, await verdictOf(kernel.codec, answer), by);
    },
    reopen: (failed, by) => decide(failed, { state: "reopened" }, by),
    async history(id) {
      checkId(id);
      return await reach(() => store.history(id), within);
    },
  };
}

function toDoubt(record: ClaimRecord): Doubt {
  const { id, token, version, name, key, scope, turn, runId, holder, disputed } = record;
  const claimedAt = new Date(record.claimedAt);
  return { id, token, version, ref: shortRef(id), name, key, scope, turn, runId, holder, claimedAt, disputed };
}
