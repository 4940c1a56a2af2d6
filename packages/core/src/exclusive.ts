import type { Kernel } from "./kernel.ts";
import { lockWanted, underLock } from "./lock.ts";
import { askedToStop } from "./problems.ts";
import { lockBusy, lockLost } from "./problems-lock.ts";
import { checkBody, checkKey, checkLeaseMs, checkOptions, checkWaitMs } from "./validate.ts";

export interface ExclusiveOptions {
  /** How long a silent holder counts as alive. Default 30,000, at least 1,000. */
  readonly leaseMs?: number | undefined;
  /** How long to wait in line, first come first served. Default 0: `LOCK_BUSY` at once. */
  readonly waitMs?: number | undefined;
  /** Stops the waiting, and is passed on to the body. */
  readonly signal?: AbortSignal | undefined;
}

const optionNames: Record<keyof ExclusiveOptions, true> = { leaseMs: true, waitMs: true, signal: true };

/** More than a process can have waiting: there is no limit. */
const maxQueue = 1_000_000;

export interface ExclusiveContext {
  /** Aborts when the lock is lost: stop then, somebody else may hold it. */
  readonly signal: AbortSignal;
  /** Grows with each holder: a fencing token for what the body writes. */
  readonly token: number;
}

export async function exclusive<Result>(
  kernel: Kernel,
  key: string,
  body: (context: ExclusiveContext) => Result | Promise<Result>,
  options: ExclusiveOptions,
): Promise<Result> {
  checkOptions("exclusive", options, optionNames);
  const { leaseMs = 30_000, waitMs = 0, signal } = options;
  checkBody("exclusive(key, body)", body);
  checkKey(key);
  checkLeaseMs(leaseMs);
  checkWaitMs(waitMs);
  const wanted = lockWanted(kernel, "lock", { key, name: "lock", scope: null, turn: null, runId: null, leaseMs });
  return await underLock(
    kernel,
    {
      wanted,
      what: "This lock's body",
      wait: waitMs > 0 ? { maxMs: waitMs, maxQueue } : undefined,
      signal,
      busy: (met) => lockBusy(key, met),
      lost: (details) => lockLost(key, details),
      asked: () => askedToStop("LOCK_LOST", wanted.id),
    },
    ({ signal: lockSignal, ref }) => body({ signal: lockSignal, token: ref.token }),
  );
}
