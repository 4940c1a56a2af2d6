import { type Call, event } from "./call.ts";
import { inFrame } from "./chain.ts";
import { read } from "./claim.ts";
import { answerOf, type Verdict } from "./classify.ts";
import { monotonicStopwatch, pause } from "./clock.ts";
import { TwiceproofError } from "./errors.ts";
import { idempotencyKey, randomId } from "./id.ts";
import { closed, type Kernel } from "./kernel.ts";
import { reach } from "./reach.ts";
import { linkSignals } from "./signals.ts";
import type { ClaimRecord, StoredVerdict } from "./store.ts";
import { verdictOf } from "./verdict.ts";

export interface DoubtOutcome {
  /** True: nobody knows, and the doubt stays. False: decided, or changed by somebody else; look again. */
  readonly open: boolean;
  readonly cause?: unknown;
}

/** Lets evidence end a doubt; the verdict names the version that was read before the evidence was asked for (promise 18). */
export async function resolveDoubt(
  kernel: Kernel,
  call: Call<unknown>,
  record: ClaimRecord,
  leftMs: () => number,
): Promise<DoubtOutcome> {
  if (call.kind === "idempotent")
    return await decide(kernel, call, record, { state: "released", payload: null }, "idempotent: it may run again");
  // Evidence has failed once where a late result contradicts what was said before: a person decides.
  if (record.disputed || record.cancelRequested || call.reconcile === undefined) return { open: true };
  const stood = monotonicStopwatch();
  try {
    const first = await lookUp(kernel, call, record, leftMs);
    if (first === undefined) return { open: true };
    if (first.answer !== "not-done") return await apply(kernel, call, record, first);
    if (!first.authoritative) return { open: true };
    // "Not done" counts only for a doubt that stood unchanged for a while before the look-up (docs/protocol.md, "Reconcile").
    const restMs = standMs(kernel, call, record) - stood();
    if (restMs > leftMs()) return { open: true };
    await pause(restMs, { signal: call.signal });
    call.signal?.throwIfAborted();
    const again = await read(kernel, call.id);
    if (again?.version !== record.version || again.token !== record.token) return { open: false };
    const second = await lookUp(kernel, call, record, leftMs);
    if (second === undefined || (second.answer === "not-done" && !second.authoritative)) return { open: true };
    return await apply(kernel, call, record, second);
  } catch (cause) {
    call.signal?.throwIfAborted();
    return { open: true, cause };
  }
}

/**
 * A holder that lives renews every third of its lease, and so changes the version: its doubt, which a clock that was set
 * forward made, does not stand for half a lease. One that gave up renews nothing.
 */
function standMs(kernel: Kernel, { settleDelayMs }: Call<unknown>, { abandoned, leaseMs }: ClaimRecord): number {
  return abandoned || kernel.settleDelayMs !== undefined ? settleDelayMs : Math.max(settleDelayMs, leaseMs / 2);
}

/** Undefined: the hook does not know, or does not answer while the caller can wait. */
async function lookUp(
  kernel: Kernel,
  call: Call<unknown>,
  record: ClaimRecord,
  leftMs: () => number,
): Promise<Verdict | undefined> {
  const over = new AbortController();
  const { signal, unlink } = linkSignals(call.signal, call.runSignal, over.signal);
  const giveUp = async (): Promise<void> => over.abort(closed());
  kernel.giveUps.add(giveUp);
  try {
    // In a frame: a hook that calls its own effect would wait for itself.
    const asked = inFrame(call.id, "effect", async () => ({
      said: await call.reconcile?.({
        idempotencyKey: idempotencyKey(call.id),
        id: call.id,
        token: record.token,
        claimedAt: new Date(record.claimedAt),
        signal,
      }),
    }));
    await pause(Math.max(leftMs(), 1_000), { until: asked, signal });
    const answered = await Promise.race([asked, Promise.resolve(undefined)]);
    if (answered === undefined) return undefined;
    const answer = answerOf(answered.said);
    if (answer === undefined)
      throw new TwiceproofError(
        "INVALID_ARGUMENT",
        "`reconcile` must answer done(result), doneWithoutResult(), refused(why), notDone(…) or unknown().",
      );
    return answer.answer === "unknown" ? undefined : answer;
  } finally {
    kernel.giveUps.delete(giveUp);
    over.abort(new Error("the look-up took too long"));
    unlink();
  }
}

async function apply(kernel: Kernel, call: Call<unknown>, record: ClaimRecord, answer: Verdict): Promise<DoubtOutcome> {
  return await decide(kernel, call, record, await verdictOf(call.codec, answer), `reconcile answered ${answer.answer}`);
}

async function decide(
  kernel: Kernel,
  call: Call<unknown>,
  record: ClaimRecord,
  verdict: StoredVerdict,
  why: string,
): Promise<DoubtOutcome> {
  const by = { decisionId: randomId(), who: `reconcile@${kernel.holder}`, why, evidence: null };
  const resolved = await reach(() => kernel.store.resolve(record, verdict, by), { withinMs: kernel.storeTimeoutMs });
  if (resolved !== "refused") kernel.emit(event(call, "reconciled", record.token));
  // Refused: a renewal, a settlement or another verdict came first. Whatever it was, it is on the record.
  return { open: false };
}
