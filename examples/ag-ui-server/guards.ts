import { type Run, type RunOptions, type Twiceproof, TwiceproofError } from "@twiceproof/core";

/** What a run leaves behind, and what is told to whoever asks for it again: plain data, and little of it. */
export interface Outcome {
  /** The thread as this run left it. */
  readonly checkpointId: string;
  readonly cancelled: boolean;
}

interface Place {
  readonly thread: string;
  readonly runId: string;
  /** Aborts when the client goes away: it leaves the line, or its run stops. */
  readonly signal: AbortSignal;
}

/** Lets a run take its turn on a thread, or throws. `run`: that of Twiceproof. */
export type Guard = (place: Place, turn: (signal: AbortSignal, run?: Run) => Promise<Outcome>) => Promise<Outcome>;

export const noLock: Guard = ({ signal }, turn) => turn(signal);

export function lockInProcess(): Guard {
  const busy = new Set<string>();
  return async ({ thread, signal }, turn) => {
    if (busy.has(thread)) throw new TwiceproofError("THREAD_BUSY", "Another run is working on this thread.");
    busy.add(thread);
    try {
      return await turn(signal);
    } finally {
      busy.delete(thread);
    }
  };
}

/** One run per thread at a time, on all servers. */
export function lockInDatabase(tp: Twiceproof, options: Pick<RunOptions, "onBusy" | "leaseMs">): Guard {
  return (place, turn) => tp.withRun({ ...place, ...options }, (run) => turn(run.signal, run));
}
