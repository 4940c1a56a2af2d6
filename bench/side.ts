import { randomBytes } from "node:crypto";
import type { Store } from "@twiceproof/core/store";
import { claimId, randomId } from "@twiceproof/core/store";
import { claim, settle } from "../packages/core/src/claim.ts";
import { createKernel, type Kernel } from "../packages/core/src/kernel.ts";

/** One of the two ways to record the same fact: claim a new key, then write down what came of it. */
export interface Side {
  /** Resolves to what settles it. */
  claim(key: string): Promise<() => Promise<void>>;
}

/** What either side writes for a key. */
export interface Fact {
  readonly id: string;
  readonly attemptId: string;
  readonly namespace: string;
  readonly key: string;
  readonly name: string;
  readonly fingerprint: string;
  readonly holder: string;
  readonly leaseMs: number;
}

const common = { namespace: "bench", name: "charge", fingerprint: `1:${"0".repeat(64)}`, leaseMs: 30_000 } as const;
const holder = "bench-worker:12345:0f0f0f";

/** 200 bytes. */
export const result: string = JSON.stringify({ charge: "c".repeat(187) });

export function fact(key: string): Fact {
  return { ...common, holder, key, id: claimId(common.namespace, "effect", key), attemptId: randomId() };
}

/** New in every run. */
export function keys(): () => string {
  const run = randomBytes(6).toString("hex");
  let next = 0;
  return () => `order:${run}:${next++}`;
}

export interface CoreSide extends Side {
  /** What a later caller of a finished key does. Rejects when it was not finished. */
  replay(key: string): Promise<void>;
}

/** As `once` does it: core's lanes, patience and clocks; without the body, the codec and the heartbeat. */
export function coreSide(store: Store): CoreSide {
  const kernel = createKernel({
    store,
    namespace: common.namespace,
    holder,
    maxResultBytes: 1_048_576,
    storeTimeoutMs: 10_000,
    settleDelayMs: undefined,
    onEvent: undefined,
  });
  return {
    async claim(key) {
      const claimed = await claim(kernel, wanted(key));
      if (claimed.answer !== "won") throw new Error(`a new key was answered ${claimed.answer}`);
      return () => finish(kernel, claimed.ref);
    },
    async replay(key) {
      const met = await claim(kernel, wanted(key));
      if (met.answer !== "taken" || met.record.payload?.text !== result)
        throw new Error(`a finished key was answered ${met.answer}`);
    },
  };
}

function wanted(key: string): Parameters<typeof claim>[1] {
  const { name, fingerprint, leaseMs } = common;
  const id = claimId(common.namespace, "effect", key);
  return { id, kind: "effect", key, name, scope: null, turn: null, runId: null, fingerprint, leaseMs, fence: null };
}

async function finish(kernel: Kernel, ref: Parameters<typeof settle>[1]): Promise<void> {
  const answer = await settle(kernel, ref, { state: "completed", payload: { format: "json", text: result } });
  if (answer !== "settled") throw new Error(`a settlement was answered ${answer}`);
}
