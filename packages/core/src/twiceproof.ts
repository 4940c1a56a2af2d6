import { frames } from "./chain.ts";
import { monotonicStopwatch, pause } from "./clock.ts";
import { createDoubts, type Doubts } from "./doubts.ts";
import { type AnyEffect, checkRules } from "./effect.ts";
import { TwiceproofError } from "./errors.ts";
import type { TwiceproofEvent } from "./events.ts";
import { type ExclusiveContext, type ExclusiveOptions, exclusive } from "./exclusive.ts";
import { holderName } from "./id.ts";
import { createKernel } from "./kernel.ts";
import { createOnce, type Once } from "./once.ts";
import { createRecorded, type RecordedOf } from "./recorded.ts";
import { type Run, type RunOptions, withRun } from "./run.ts";
import type { Store } from "./store.ts";
import { checkCount, checkDuration, checkName, checkNamespace, checkOptions } from "./validate.ts";

export interface TwiceproofOptions {
  /** Where all workers claim and record. */
  readonly store: Store;
  /** Separates applications, and environments, that share a store. Default "default". */
  readonly namespace?: string | undefined;
  /** The effects of this application. Checked once: two different effects of one name are refused. */
  readonly effects?: readonly AnyEffect[] | undefined;
  /** Told of what happens, without keys, inputs and results; for logs and metrics. */
  readonly onEvent?: ((event: TwiceproofEvent) => void) | undefined;
  /**
   * How long to keep asking a store that does not answer: before an effect, which then does not run; three times as long
   * after it, which then is reported as in doubt. Default 10,000.
   */
  readonly storeTimeoutMs?: number | undefined;
  /** The most that is kept of one result, in bytes as recorded, that is after compression. Over it, only that it happened is recorded. Default 1 MiB. */
  readonly maxResultBytes?: number | undefined;
}

export interface Twiceproof {
  /** What was given. Its `health`, `migrate` and `prune` are for operators; the rest is for this package. */
  readonly store: Store;
  readonly once: Once;
  readonly recorded: RecordedOf;
  /**
   * One holder at a time. Unlike an effect's claim, a lock whose lease is over is taken over.
   *
   * @throws TwiceproofError `LOCK_BUSY`; `LOCK_LOST` when the body returned, but the lock may have been somebody else's
   */
  exclusive<Result>(
    key: string,
    body: (context: ExclusiveContext) => Result | Promise<Result>,
    options?: ExclusiveOptions,
  ): Promise<Result>;
  /**
   * One run per thread at a time. The loser has done nothing.
   *
   * @throws TwiceproofError `THREAD_BUSY`, or `RUN_IN_PROGRESS` when this very run holds the thread, at once. `RUN_LOST`
   * when the body returned, but the thread may have been another run's meanwhile.
   */
  withRun<Result>(options: RunOptions, body: (run: Run) => Result | Promise<Result>): Promise<Result>;
  /** What nobody knows the outcome of, and the verdicts that end it. For operators. */
  readonly doubts: Doubts;
  /**
   * For SIGTERM: starts nothing new, waits for what runs, then aborts the rest and gives it up, so that others learn of the
   * doubt now and not at the end of the lease. Closes the store if the store opened its own connection. `graceMs` default 25,000.
   */
  close(options?: { readonly graceMs?: number }): Promise<void>;
}

const optionNames: Record<keyof TwiceproofOptions, true> = {
  store: true,
  namespace: true,
  effects: true,
  onEvent: true,
  storeTimeoutMs: true,
  maxResultBytes: true,
};

/** After `close` gave up: a body that heeds its signal may still say what became of it. */
const lastWordMs = 1_000;

/**
 * The one object that owns what lives: the store, the heartbeat, the group commit. Make one for each process. Making it
 * does nothing yet: no connection, no timer.
 *
 * @throws TwiceproofError `INVALID_ARGUMENT`
 */
export function createTwiceproof(options: TwiceproofOptions): Twiceproof {
  return assemble(options ?? {});
}

/** `settleDelayMs`: in place of every effect's own, for the test kit. */
export function assemble(options: TwiceproofOptions, fixed: { readonly settleDelayMs?: number } = {}): Twiceproof {
  checkOptions("createTwiceproof", options, optionNames);
  const {
    store,
    namespace = "default",
    effects = [],
    onEvent,
    storeTimeoutMs = 10_000,
    maxResultBytes = 1024 * 1024,
  } = options;
  if (store instanceof Promise)
    throw new TwiceproofError(
      "INVALID_ARGUMENT",
      "`store` is a promise: await it, and give createTwiceproof what it brings.",
    );
  if (typeof store?.claim !== "function")
    throw new TwiceproofError(
      "INVALID_ARGUMENT",
      '`store` is missing, or is none: give createTwiceproof a store, such as sqliteStore("app.db").',
    );
  checkNamespace(namespace);
  checkDuration("storeTimeoutMs", storeTimeoutMs, 100);
  checkCount("maxResultBytes", maxResultBytes);
  checkEffects(effects);
  const kernel = createKernel({
    store,
    namespace,
    holder: holderName(),
    maxResultBytes,
    storeTimeoutMs,
    settleDelayMs: fixed.settleDelayMs,
    onEvent,
  });

  return {
    store,
    once: createOnce(kernel),
    recorded: createRecorded(kernel),
    doubts: createDoubts(kernel),
    withRun: async (runOptions, body) => await withRun(kernel, runOptions, body),

    exclusive: async (key, body, lockOptions = {}) => await exclusive(kernel, key, body, lockOptions),

    async close(closeOptions = {}) {
      checkOptions("close", closeOptions, { graceMs: true });
      const { graceMs = 25_000 } = closeOptions;
      // What a handler of SIGTERM has worked out, such as 12.5, must not keep it from closing.
      checkDuration("graceMs", typeof graceMs === "number" ? Math.floor(graceMs) : graceMs);
      if (frames().length > 0)
        throw new TwiceproofError("WAITS_FOR_ITSELF", "`close` waits for what runs, and was called from inside of it.");
      kernel.closing = true;
      await quiet(kernel.calls, graceMs);
      await Promise.all([...kernel.giveUps].map((giveUp) => giveUp()));
      await quiet(kernel.calls, lastWordMs);
      await store.close();
    },
  };
}

async function quiet(calls: ReadonlySet<Promise<void>>, withinMs: number): Promise<void> {
  const waited = monotonicStopwatch();
  while (calls.size > 0 && waited() < withinMs) await pause(withinMs - waited(), { until: Promise.all(calls) });
}

function checkEffects(effects: readonly AnyEffect[]): void {
  const byName = new Map<string, unknown>();
  for (const effect of effects) {
    checkName(effect?.name);
    checkRules(effect);
    if ((byName.get(effect.name) ?? effect) !== effect)
      throw new TwiceproofError(
        "INVALID_ARGUMENT",
        `Two different effects are called "${effect.name}": a name stands for one effect, because it is part of what is recorded.`,
      );
    byName.set(effect.name, effect);
  }
}
