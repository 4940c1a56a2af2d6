import { inFrame, refuseSelfWait } from "./chain.ts";
import { claim, release, releaseUnnoticed, type Wanted } from "./claim.ts";
import type { TwiceproofError } from "./errors.ts";
import { lockFingerprint } from "./fingerprint.ts";
import type { Hold } from "./heartbeat.ts";
import { claimId } from "./id.ts";
import { enter, isClosing, type Kernel, remember, underWay } from "./kernel.ts";
import { type Line, type LinePlan, lineUp, refuseWhenCalledOff } from "./line.ts";
import { ready } from "./ready.ts";
import { linkSignals } from "./signals.ts";
import type { ClaimRef, Left } from "./store.ts";

export interface LockPlan extends LinePlan {
  readonly what: string;
  readonly everyMs?: number;
  readonly lost: (details?: { readonly value?: unknown; readonly cause?: unknown }) => TwiceproofError;
  readonly asked: () => TwiceproofError;
  /** What `close` does with a body that does not end in time, beside aborting its signal. */
  readonly giveUp?: (ref: ClaimRef) => Promise<void>;
}

export interface Locked {
  readonly ref: ClaimRef;
  readonly signal: AbortSignal;
}

/** Threads and locks are both locks; their keys never meet. */
export function lockWanted(
  kernel: Kernel,
  space: "thread" | "lock",
  lock: Pick<Wanted, "key" | "name" | "scope" | "turn" | "runId" | "leaseMs">,
): LockPlan["wanted"] {
  return { ...lock, id: claimId(kernel.namespace, space, lock.key), fingerprint: lockFingerprint };
}

/**
 * Holds a lock while the body runs. When it was lost meanwhile, the answer is an error even if the body returned: nobody
 * may be told of a success that somebody else may have overwritten.
 */
export async function underLock<Result>(
  kernel: Kernel,
  plan: LockPlan,
  body: (locked: Locked) => Result | Promise<Result>,
): Promise<Result> {
  refuseSelfWait(plan.wanted.id, plan.what);
  return await underWay(kernel, () => holding(kernel, plan, body));
}

async function holding<Result>(
  kernel: Kernel,
  plan: LockPlan,
  body: (locked: Locked) => Result | Promise<Result>,
): Promise<Result> {
  const { wanted, signal } = plan;
  const { ref, hold, version } = await take(kernel, plan);
  const links = linkSignals(hold.signal, signal);
  const leave = enter(kernel, wanted.id, async () => {
    hold.stop(plan.lost());
    await plan.giveUp?.(ref);
  });
  try {
    const value = await inFrame(wanted.id, "lock", async () => body({ ref, signal: links.signal })).catch(
      async (error: unknown) => {
        // The body's error matters more than a release that failed: the lease then frees the lock.
        await release(kernel, ref).catch(() => undefined);
        throw error;
      },
    );
    // A heartbeat that crosses with the release finds the lock free: no news for what the body left running.
    links.unlink();
    const freed = await end(kernel, plan, hold, ref, value);
    // A renewal in between has raised it further: then the next claim is told what it is.
    if (freed) remember(kernel, wanted.id, { version: version + 1, token: ref.token });
    return value;
  } finally {
    hold.drop();
    links.unlink();
    leave();
  }
}

interface Taken {
  readonly ref: ClaimRef;
  readonly hold: Hold;
  readonly version: number;
}

async function take(kernel: Kernel, plan: LockPlan): Promise<Taken> {
  const line = lineUp(kernel, plan);
  let taken: Taken | undefined;
  try {
    taken = await takeInTurn(kernel, plan, line);
    return taken;
  } finally {
    line.end(taken !== undefined);
  }
}

async function takeInTurn(kernel: Kernel, plan: LockPlan, line: Line): Promise<Taken> {
  const { wanted, signal } = plan;
  let free: Left | null = null;
  for (;;) {
    refuseWhenCalledOff(kernel, signal);
    const request = { ...wanted, kind: "lock", fence: null, ticketId: line.ticketId() } as const;
    const claimed = await claim(kernel, request, free ?? kernel.freed.get(wanted.id));
    if (claimed.answer === "won") {
      const { ref, sent, version } = claimed;
      const { leaseMs } = wanted;
      const hold = kernel.heartbeat.hold(ref, {
        kind: "lock",
        leaseMs,
        everyMs: plan.everyMs,
        sent,
        lostError: plan.lost,
        stopError: plan.asked,
      });
      const alive = await ready(hold, leaseMs, kernel.storeTimeoutMs).catch((error: unknown) => {
        hold.drop();
        releaseUnnoticed(kernel, ref);
        throw error;
      });
      if (alive && !isClosing(kernel) && !signal?.aborted) return { ref, hold, version };
      hold.drop();
      if (alive) await release(kernel, ref).catch(() => undefined);
      free = null;
      continue;
    }
    free = await line.turn(claimed.record);
  }
}

/** Whether the store has said that it is free. */
async function end(kernel: Kernel, plan: LockPlan, hold: Hold, ref: ClaimRef, value: unknown): Promise<boolean> {
  if (hold.lost()) throw plan.lost({ value });
  const settled = await release(kernel, ref).catch((cause: unknown) => {
    // Not reached, but still ours: it frees itself when the lease is over.
    if (hold.leftMs() > 0) return "unknown" as const;
    throw plan.lost({ value, cause });
  });
  if (settled === "lost") throw plan.lost({ value });
  return settled !== "unknown";
}
