import { performance } from "node:perf_hooks";
import { clearTimeout, setImmediate, setTimeout } from "node:timers";

/**
 * Timers and clocks of this process, captured when the module loads: fake timers of a user's test must not stop a
 * heartbeat. Those of `node:timers` and `node:perf_hooks` stay real also where the fakes were there first (tried with
 * vitest 5).
 */
const monotonic = performance.now.bind(performance);
const wall = Date.now.bind(Date);

/**
 * Milliseconds since it was started, by whichever of two clocks says more: the monotonic one may stand still while a
 * machine sleeps, the wall clock may be set back (promise 11).
 */
export type Stopwatch = () => number;

export function stopwatch(): Stopwatch {
  const monotonicStart = monotonic();
  const wallStart = wall();
  return () => Math.max(monotonic() - monotonicStart, wall() - wallStart);
}

/** Monotonic only: for waiting a time that must really pass. */
export function monotonicStopwatch(): Stopwatch {
  const start = monotonic();
  return () => monotonic() - start;
}

/** Once this turn of the event loop has handed in all it has. */
export function afterTurn(run: () => void): void {
  setImmediate(run);
}

/** Calls once, unless cancelled. `background` timers do not keep the process alive. */
export function timer(ms: number, run: () => void, options: { readonly background?: boolean } = {}): () => void {
  const handle = setTimeout(run, Math.max(0, ms));
  if (options.background) handle.unref();
  return () => clearTimeout(handle);
}

/** Ends early, without an error, when one of `until` is done or the signal aborts. */
export async function pause(
  ms: number,
  options: {
    readonly signal?: AbortSignal | undefined;
    readonly until?: Promise<unknown> | undefined;
    readonly background?: boolean;
  } = {},
): Promise<void> {
  const { signal, until, background = false } = options;
  if (signal?.aborted) return;
  await new Promise<void>((resolve) => {
    const cancel = timer(ms, done, { background });
    function done(): void {
      cancel();
      signal?.removeEventListener("abort", done);
      resolve();
    }
    signal?.addEventListener("abort", done, { once: true });
    until?.then(done, done);
  });
}

/** Full jitter: callers that failed together do not come back together. */
export function jittered(ms: number): number {
  return ms * (0.5 + Math.random() / 2);
}
