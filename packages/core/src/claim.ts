import { type Stopwatch, stopwatch } from "./clock.ts";
import { isFinal, isTwiceproofError, TwiceproofError } from "./errors.ts";
import { randomId } from "./id.ts";
import type { Kernel } from "./kernel.ts";
import { reach } from "./reach.ts";
import type { ClaimRecord, ClaimRef, ClaimRequest, ClaimResult, Left, Settled, SettledState } from "./store.ts";

export type Wanted = Omit<ClaimRequest, "attemptId" | "seen" | "holder" | "namespace">;

export interface Won {
  readonly answer: "won";
  readonly ref: ClaimRef;
  /** Started before the claim was sent: the lease is over at the latest `leaseMs` after. */
  readonly sent: Stopwatch;
  /** The one that the row had, at least, when it was won. */
  readonly version: number;
}

/** Others may free and take the key while we ask: after so many rounds the caller is told who has it. */
const maxRounds = 10;

/**
 * `free`: the record as it was read or left, when it was free: saves asking for it.
 *
 * @throws TwiceproofError `STORE_UNAVAILABLE`; then nothing was executed, and a claim that landed unnoticed is released
 * as soon as the store answers again, or else is in doubt after its lease.
 */
export async function claim(
  kernel: Kernel,
  wanted: Wanted,
  free?: Left,
): Promise<
  | Won
  | { readonly answer: "taken"; readonly record: ClaimRecord }
  | Extract<ClaimResult, { answer: "behind" | "fenced" }>
> {
  const ask = wanted.kind === "lock" ? kernel.claimLock : kernel.claimEffect;
  let seen: Left | undefined = free;
  for (let round = 1; ; round++) {
    const sent = stopwatch();
    const { namespace, holder } = kernel;
    const request = { ...wanted, namespace, holder, attemptId: randomId(), seen: seen?.version ?? null };
    const ref: ClaimRef = { id: wanted.id, attemptId: request.attemptId, token: (seen?.token ?? 0) + 1 };
    const result = await reach((caller) => ask(request, caller), {
      withinMs: kernel.storeTimeoutMs,
      onLate: (late) => late.answer === "won" && releaseUnnoticed(kernel, ref),
    }).catch((error: unknown) => {
      if (isFinal(error)) throw error;
      releaseUnnoticed(kernel, ref);
      throw nothingExecuted(error);
    });
    if (result.answer === "won") {
      const version = (request.seen ?? 0) + 1;
      return { answer: "won", ref: { ...ref, token: result.token }, sent, version };
    }
    if (result.answer !== "free") return result;
    if (round === maxRounds) return { answer: "taken", record: result.record };
    seen = result.record;
  }
}

/** For the caller, who asked for more than a claim. */
export function nothingExecuted(error: unknown): unknown {
  if (!isTwiceproofError(error)) return error;
  const { code, message, cause, help } = error;
  return new TwiceproofError(code, `${message} Nothing was executed.`, { cause, help });
}

/** Safe, because no body ran under this claim. */
export function releaseUnnoticed(kernel: Kernel, ref: ClaimRef): void {
  settle(kernel, ref, { state: "released", payload: null }, { background: true }).catch(() => undefined);
}

export interface SettleOutcome {
  readonly state: SettledState;
  readonly payload: ClaimRecord["payload"];
}

/** Retried three times as long as a claim: the outcome is known, and only the record is missing (promise 17). */
export function settle(
  kernel: Kernel,
  ref: ClaimRef,
  outcome: SettleOutcome,
  options: { readonly background?: boolean } = {},
): Promise<Settled> {
  return reach((caller) => kernel.settle({ ...ref, ...outcome }, caller), {
    withinMs: 3 * kernel.storeTimeoutMs,
    patient: true,
    ...options,
  });
}

/** Of a lock, by its holder. */
export function release(kernel: Kernel, ref: ClaimRef): Promise<Settled> {
  return reach((caller) => kernel.release({ ...ref, state: "released", payload: null }, caller), {
    withinMs: 3 * kernel.storeTimeoutMs,
    patient: true,
  });
}

/** Best effort: when the store can't be reached, the lease runs out and says the same. */
export async function abandon(kernel: Kernel, ref: ClaimRef, reason: string): Promise<void> {
  await reach(() => kernel.store.abandon(ref, reason), { withinMs: kernel.storeTimeoutMs }).catch(() => undefined);
}

export function read(kernel: Kernel, id: string): Promise<ClaimRecord | null> {
  return reach((caller) => kernel.get({ id }, caller), { withinMs: kernel.storeTimeoutMs });
}
