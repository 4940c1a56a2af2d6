import { AsyncResource } from "node:async_hooks";
import type { TwiceproofError } from "../../src/errors.ts";
import type { TwiceproofEvent } from "../../src/events.ts";
import { type ClaimSpace, claimId } from "../../src/id.ts";
import { memoryStore } from "../../src/memory-store.ts";
import type { ClaimRecord, HistoryEntry } from "../../src/store.ts";
import { createTwiceproof, type Twiceproof, type TwiceproofOptions } from "../../src/twiceproof.ts";
import { type FaultyStore, faultyStore } from "./faults.ts";
import { rejection } from "./waiting.ts";

export interface World extends FaultyStore {
  readonly tp: Twiceproof;
  readonly events: readonly TwiceproofEvent[];
  /** Another worker on the same store, without the faults of the first one. */
  worker(options?: Partial<TwiceproofOptions>): Twiceproof;
  /** Runs as another process would: not inside of the body that calls it. */
  elsewhere<T>(run: () => T): T;
  /** Puts the store's clock forward: leases lapse, and no timer of this process notices. */
  advance(ms: number): void;
  record(key: string, kind?: ClaimSpace): Promise<ClaimRecord>;
  history(key: string): Promise<readonly HistoryEntry[]>;
  /** How often a body was started, by this worker. */
  executions(): number;
}

/** One worker on a memory store, with a store's clock and faults that the test is the master of. */
export function world(options: Partial<TwiceproofOptions> = {}): World {
  let aheadMs = 0;
  const real = memoryStore({ now: () => Date.now() + aheadMs });
  const faulty = faultyStore(real);
  const outside = new AsyncResource("elsewhere");
  const events: TwiceproofEvent[] = [];
  const tp = createTwiceproof({
    store: faulty.store,
    storeTimeoutMs: 600,
    onEvent: (event) => events.push(event),
    ...options,
  });
  const idOf = (key: string, kind: ClaimSpace): string => claimId(options.namespace ?? "default", kind, key);
  return {
    ...faulty,
    tp,
    events,
    worker: (others = {}) => createTwiceproof({ store: real, storeTimeoutMs: 600, ...others }),
    elsewhere: (run) => outside.runInAsyncScope(run),
    advance(ms) {
      aheadMs += ms;
    },
    async record(key, kind = "effect") {
      const [record] = await real.get([idOf(key, kind)]);
      if (!record) throw new Error("there is no such record");
      return record;
    },
    history: (key) => real.history(idOf(key, "effect")),
    executions: () => events.filter(({ type }) => type === "executing").length,
  };
}

/** The error of ours that a call was rejected with. */
export async function problem(promise: Promise<unknown>): Promise<TwiceproofError> {
  return (await rejection(promise)) as TwiceproofError;
}
