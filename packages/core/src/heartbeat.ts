import { type Stopwatch, stopwatch, timer } from "./clock.ts";
import type { TwiceproofError } from "./errors.ts";
import type { ClaimKind, ClaimRef, Renewal, Renewed, Store } from "./store.ts";

const maxItems = 500;

export interface Hold {
  readonly ref: ClaimRef;
  /** Aborts when the claim was lost or its holder is asked to stop; the reason is a TwiceproofError. */
  readonly signal: AbortSignal;
  readonly lost: () => boolean;
  /** What is left of the lease by this process's clocks, counted from before the last acknowledged statement was sent. */
  readonly leftMs: () => number;
  /** Renews out of turn. False: no longer ours. Rejects when the store does not answer. */
  readonly renew: () => Promise<boolean>;
  readonly stop: (reason: TwiceproofError) => void;
  readonly drop: () => void;
}

export interface Heartbeat {
  hold(ref: ClaimRef, lease: HoldOptions): Hold;
  /** Something was decided about this id: what this process holds of it is renewed out of turn, and so hears of it now. */
  hurry(id: string): void;
}

export interface HoldOptions {
  readonly kind: ClaimKind;
  readonly leaseMs: number;
  /** The longest time between two renewals, for holders that are to hear soon of a request to stop. A third of the lease at most. */
  readonly everyMs?: number | undefined;
  /** Started before the claim was sent. */
  readonly sent: Stopwatch;
  /** The reason that the signal gives when the claim was lost. */
  readonly lostError: () => TwiceproofError;
  /** The reason that the signal gives when the holder is asked to stop. */
  readonly stopError: () => TwiceproofError;
}

interface Beat extends Hold {
  readonly options: HoldOptions;
  ended: boolean;
  acknowledged: Stopwatch;
  /** Started when the last question was sent. */
  asked: Stopwatch;
  unanswered: number;
  /** After a failure, asked again sooner than in a beat. */
  retryMs: number | undefined;
  /** Since it was noticed, in a process that runs, that the lease is over. */
  overdue: Stopwatch | undefined;
}

/**
 * Renews all that this process holds, in few statements: whatever is due, or nearly, goes together; each with its own
 * lease. Nothing runs while nothing is held, and no timer keeps a process alive.
 *
 * A lapsed *effect* goes on: only its holder knows the outcome, and may still record it (promise 4). A lapsed *lock* may
 * be another's: its holder is stopped, once it has had the chance to ask. A blocked event loop is not a death (promise 9).
 */
export function createHeartbeat(renew: Store["renew"]): Heartbeat {
  const beats = new Set<Beat>();
  let wake: { readonly inMs: number; readonly since: Stopwatch; readonly cancel: () => void } | undefined;

  function dueInMs({ options, unanswered, retryMs, asked }: Beat): number {
    return (unanswered > 0 ? options.leaseMs / 4 : (retryMs ?? beatMs(options))) - asked();
  }

  /** When a lock that is not renewed has to be looked at: at the end of its lease, and once more a little later. */
  function verdictInMs(beat: Beat): number {
    if (beat.options.kind === "effect") return Number.POSITIVE_INFINITY;
    return beat.overdue ? beat.options.leaseMs / 4 - beat.overdue() : beat.leftMs();
  }

  /** Brings the next look forward, never back: a look that finds nothing due costs little, and one per claim would not. */
  function wakeIn(ms: number): void {
    if (wake !== undefined && wake.inMs - wake.since() <= ms) return;
    wake?.cancel();
    wake = { inMs: ms, since: stopwatch(), cancel: timer(Math.max(ms, 10), tick, { background: true }) };
  }

  function schedule(): void {
    let soonest = Number.POSITIVE_INFINITY;
    for (const beat of beats) soonest = Math.min(soonest, dueInMs(beat), verdictInMs(beat));
    if (beats.size > 0) wakeIn(soonest);
  }

  function tick(): void {
    wake = undefined;
    const together: Beat[] = [];
    for (const beat of [...beats]) {
      if (giveUpLock(beat) || dueInMs(beat) > 0.3 * beatMs(beat.options)) continue;
      // A question without an answer may hang on one blocked row: its items are asked again one by one.
      if (beat.unanswered > 0) void ask([beat]);
      else together.push(beat);
    }
    for (let from = 0; from < together.length; from += maxItems) void ask(together.slice(from, from + maxItems));
    schedule();
  }

  function giveUpLock(beat: Beat): boolean {
    if (verdictInMs(beat) > 0) return false;
    if (beat.overdue === undefined) {
      beat.overdue = stopwatch();
      return false;
    }
    lose(beat);
    return true;
  }

  async function ask(asked: readonly Beat[]): Promise<void> {
    const sent = stopwatch();
    for (const beat of asked) {
      beat.asked = sent;
      beat.unanswered++;
    }
    try {
      const answers = await renew(asked.map(toRenewal));
      asked.forEach((beat, index) => void take(beat, answers[index], sent));
    } catch {
      // Not reached: asked again sooner. What follows from a store that stays away is decided by the lease alone.
      for (const beat of asked) take(beat, "busy", sent);
    }
    schedule();
  }

  function take(beat: Beat, answer: Renewed | undefined, sent: Stopwatch): void {
    beat.unanswered = Math.max(0, beat.unanswered - 1);
    switch (answer) {
      case "held":
      case "cancel-requested":
        if (sent() < beat.acknowledged()) beat.acknowledged = sent;
        beat.unanswered = 0;
        beat.retryMs = undefined;
        beat.overdue = undefined;
        if (answer === "cancel-requested") beat.stop(beat.options.stopError());
        return;
      case "lost":
        lose(beat);
        return;
      case "busy":
      case undefined:
        beat.retryMs = Math.min(500, beat.options.leaseMs / 10);
        return;
    }
  }

  function lose(beat: Beat): void {
    beats.delete(beat);
    beat.ended = true;
    beat.stop(beat.options.lostError());
  }

  return {
    hold(ref, options) {
      const controller = new AbortController();
      const beat: Beat = {
        ref,
        options,
        ended: false,
        acknowledged: options.sent,
        asked: options.sent,
        unanswered: 0,
        retryMs: undefined,
        overdue: undefined,
        signal: controller.signal,
        lost: () => beat.ended,
        leftMs: () => options.leaseMs - beat.acknowledged(),
        async renew() {
          const started = stopwatch();
          const [answer] = await renew([toRenewal(beat)]);
          if (answer === "busy" || answer === undefined) throw new Error("the row was busy");
          take(beat, answer, started);
          return answer !== "lost";
        },
        stop: (reason) => controller.abort(reason),
        drop() {
          beats.delete(beat);
          if (beats.size > 0) return;
          wake?.cancel();
          wake = undefined;
        },
      };
      beats.add(beat);
      wakeIn(Math.min(dueInMs(beat), verdictInMs(beat)));
      return beat;
    },
    hurry(id) {
      for (const beat of beats) if (beat.ref.id === id) void ask([beat]);
    },
  };
}

function beatMs({ leaseMs, everyMs = leaseMs / 3 }: HoldOptions): number {
  return Math.min(leaseMs / 3, everyMs);
}

function toRenewal(beat: Beat): Renewal {
  return { ...beat.ref, leaseMs: beat.options.leaseMs };
}
