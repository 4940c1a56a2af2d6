import { nothingExecuted, type Wanted } from "./claim.ts";
import { spend } from "./classify.ts";
import { jittered, monotonicStopwatch, pause, stopwatch } from "./clock.ts";
import type { TwiceproofError } from "./errors.ts";
import { randomId } from "./id.ts";
import { isClosing, type Kernel, refuseWhenClosing, underWay } from "./kernel.ts";
import { isFree } from "./machine.ts";
import { type Met, ticketLeaseMs } from "./problems-lock.ts";
import { reach } from "./reach.ts";
import type { ClaimRecord, Left, Queued } from "./store.ts";

/** How a claimant waits for a lock that is not free. */
export interface WaitRules {
  readonly maxMs: number;
  /** The most that may wait. */
  readonly maxQueue: number;
  /** Called with whoever holds the lock, at each look. */
  readonly onHeld?: ((record: ClaimRecord) => Promise<unknown>) | undefined;
  /** Told its place when it enters the line, and whenever that changes. Must not throw. */
  readonly onPlace?: ((place: { readonly ahead: number }) => void) | undefined;
}

export interface LinePlan {
  readonly wanted: Omit<Wanted, "kind" | "fence" | "ticketId">;
  /** Undefined: it does not wait. */
  readonly wait: WaitRules | undefined;
  readonly signal: AbortSignal | undefined;
  readonly busy: (met: Met) => TwiceproofError;
}

/** One claimant's place in the line of a lock; it enters when it first has to wait. */
export interface Line {
  /** Undefined before it has entered. */
  ticketId(): string | undefined;
  /**
   * Waits until nobody stands before it and the lock looks free; answers how it was left, as far as that is known.
   *
   * @throws TwiceproofError what `busy` makes of it, `CLOSED`, `STORE_UNAVAILABLE`; the reason of an aborted signal
   */
  turn(met: ClaimRecord | null): Promise<Left | null>;
  /** To be called however it ends. Who won has left the line by that. */
  end(won: boolean): void;
}

const firstPollMs = 10;
const lastPollMs = 500;
/** How long to try what others can do without: the ticket's lease, and a busy answer without a line, say enough. */
const sideQuestionMs = 1_000;

export function lineUp(kernel: Kernel, { wanted, wait, signal, busy }: LinePlan): Line {
  const { store, holder } = kernel;
  const { id, runId } = wanted;
  const waited = stopwatch();
  const ticketId = randomId();
  let inLine = false;
  let over = false;
  let place: number | undefined;
  let heard: Promise<void> | undefined;
  let wakeUp = (_left?: Left): void => undefined;
  let unwatch: (() => void) | undefined;
  const wake = (left?: Left): void => wakeUp(left);

  function leave(): void {
    const left = () => reach(() => store.leave(id, ticketId), { withinMs: sideQuestionMs, background: true });
    // Best effort: who is silent is out of the line when its ticket's lease is over.
    underWay(kernel, left).catch(() => undefined);
  }

  async function ask(): Promise<Queued> {
    const { maxQueue = 0 } = wait ?? {};
    const queued = await store.queue({ id, ticketId, runId, holder, leaseMs: ticketLeaseMs, maxQueue });
    // A question that was asked again and came late has entered the line for somebody who is gone.
    if (over && queued.answer === "queued") leave();
    return queued;
  }

  async function refusal(because: Met["because"], record: ClaimRecord | null): Promise<TwiceproofError> {
    const withinMs = Math.min(sideQuestionMs, kernel.storeTimeoutMs);
    const all = await reach(() => store.line(id), { withinMs }).catch(() => []);
    return busy({ because, id, record, line: all.filter((ticket) => ticket.ticketId !== ticketId) });
  }

  /**
   * A release wakes the first at once, and the second, who may be the first by now; those behind them one after the other,
   * so that they do not stand in the way. The longer the holder is at it, the less a moment more matters.
   */
  async function rest(ahead: number, record: ClaimRecord | null, leftMs: number, woken: Promise<void>): Promise<void> {
    const held = kernel.held.get(id);
    if (held !== heard) void held?.then(() => wakeUp(kernel.freed.get(id)));
    heard = held;
    const heldMs = record === null || isFree(record) ? 0 : record.readAt - record.claimedAt;
    const pollMs = jittered(Math.min(lastPollMs, Math.max(firstPollMs * (1 + ahead), heldMs / 50)));
    const rested = monotonicStopwatch();
    const restMs = Math.min(pollMs, leftMs);
    await pause(restMs, { signal, until: woken });
    const staggeredMs = Math.min(firstPollMs * (ahead - 1), restMs - rested());
    if (staggeredMs > 0 && !isClosing(kernel)) await pause(staggeredMs, { signal });
  }

  function enter(): void {
    if (inLine) return;
    inLine = true;
    kernel.waiting.add(wake);
    unwatch ??= store.watch?.(id, wake);
  }

  function tell(ahead: number, token: number): void {
    const { name, scope, turn } = wanted;
    if (place === undefined) kernel.emit({ type: "waiting", name, id, token, scope, turn, runId });
    if (ahead !== place) wait?.onPlace?.({ ahead });
    place = ahead;
  }

  return {
    ticketId: () => (inLine ? ticketId : undefined),
    async turn(met) {
      if (isRunning(met, runId) || wait === undefined) throw await refusal("busy", met);
      const leftMs = (): number => wait.maxMs - waited();
      if (leftMs() <= 0) throw await refusal("timeout", met);
      for (;;) {
        const { promise: woken, resolve } = Promise.withResolvers<void>();
        let left: Left | undefined;
        wakeUp = (how) => {
          left = how;
          resolve();
        };
        enter();
        const queued = await reach(ask, { withinMs: kernel.storeTimeoutMs }).catch((error: unknown) => {
          throw nothingExecuted(error);
        });
        if (queued.answer === "full") {
          inLine = false;
          throw await refusal("full", met);
        }
        const { ahead, record } = queued;
        if (isRunning(record, runId)) throw await refusal("busy", record);
        tell(ahead, record?.token ?? 0);
        if (ahead === 0 && (record === null || isFree(record))) return record;
        if (leftMs() <= 0) throw await refusal("timeout", record);
        if (record !== null && !isFree(record)) await wait.onHeld?.(record);
        await rest(ahead, record, leftMs(), woken);
        refuseWhenCalledOff(kernel, signal);
        // Woken for it, and the first when it last looked: the claim itself tells whether that is still so.
        if (ahead === 0 && left !== undefined) return left;
      }
    },
    end(won) {
      over = true;
      kernel.waiting.delete(wake);
      unwatch?.();
      if (inLine && !won) leave();
    },
  };
}

/** Its own run: whoever asks for it again does not wait for it. */
function isRunning(record: ClaimRecord | null, runId: string | null): boolean {
  return record !== null && runId !== null && record.runId === runId && !isFree(record);
}

/** @throws TwiceproofError `CLOSED`; the reason of an aborted signal */
export function refuseWhenCalledOff(kernel: Kernel, signal: AbortSignal | undefined): void {
  refuseWhenClosing(kernel);
  if (!signal?.aborted) return;
  // Called off: inside of an effect that says nothing about the effect (promise 19).
  spend(signal.reason);
  throw signal.reason;
}
