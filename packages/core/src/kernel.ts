import { isInsideEffect } from "./chain.ts";
import { type Codec, type CodecType, createCodec } from "./codec.ts";
import { TwiceproofError } from "./errors.ts";
import type { TwiceproofEvent } from "./events.ts";
import { createHeartbeat, type Heartbeat } from "./heartbeat.ts";
import { type Lane, lane } from "./lane.ts";
import { isFree } from "./machine.ts";
import type { ClaimRecord, ClaimRequest, ClaimResult, Left, Settled, Settlement, Store } from "./store.ts";

/** What lives behind one `tp`: everything that `once`, `exclusive` and `withRun` share. */
export interface Kernel {
  readonly store: Store;
  readonly namespace: string;
  readonly holder: string;
  readonly codec: Codec;
  /** The codec that knows these types as well. */
  readonly codecWith: (types: readonly CodecType[] | undefined) => Codec;
  /** How long to ask a store that does not answer. */
  readonly storeTimeoutMs: number;
  /** In place of every effect's own. */
  readonly settleDelayMs: number | undefined;
  readonly heartbeat: Heartbeat;
  readonly claimEffect: Lane<ClaimRequest, ClaimResult>;
  /** A lane of its own: a batch that takes a lock and checks another's fence could deadlock with its mirror image. */
  readonly claimLock: Lane<ClaimRequest, ClaimResult>;
  readonly settle: Lane<Settlement, Settled>;
  /** Of locks; their own, because a release waits for the claims under it. */
  readonly release: Lane<Settlement, Settled>;
  readonly get: Lane<{ readonly id: string }, ClaimRecord | null>;
  readonly emit: (event: TwiceproofEvent) => void;
  /** Claims held by this process, by id: resolved when their holder is through with them. */
  readonly held: Map<string, Promise<void>>;
  /** Wakes those who wait for a lock. */
  readonly waiting: Set<() => void>;
  /** Locks that this process gave back, as they were left: whoever takes one again need not look first. */
  readonly freed: Map<string, Left>;
  /** Calls that are under way: `close` waits for them. */
  readonly calls: Set<Promise<void>>;
  /** Given up by `close` when it ran out of patience. */
  readonly giveUps: Set<() => Promise<void>>;
  /** Names of effects whose results could not be kept, and of which somebody was told. */
  readonly warned: Set<string>;
  closing: boolean;
}

export interface KernelOptions {
  readonly store: Store;
  readonly namespace: string;
  readonly holder: string;
  readonly maxResultBytes: number;
  readonly storeTimeoutMs: number;
  readonly settleDelayMs: number | undefined;
  readonly onEvent: ((event: TwiceproofEvent) => void) | undefined;
}

export function createKernel({ onEvent, maxResultBytes, ...options }: KernelOptions): Kernel {
  const { store } = options;
  const manyWriters = !store.oneWriter;
  const codec = createCodec({ maxResultBytes });
  const codecs = new WeakMap<readonly CodecType[], Codec>();

  function codecWith(types: readonly CodecType[] | undefined): Codec {
    if (types === undefined) return codec;
    const made = codecs.get(types) ?? createCodec({ types, maxResultBytes });
    codecs.set(types, made);
    return made;
  }

  return {
    ...options,
    codec,
    codecWith,
    heartbeat: createHeartbeat((renewals) => store.renew(renewals)),
    claimEffect: lane((requests) => store.claim(requests), { answers: concerns, divides: manyWriters }),
    claimLock: lane((requests) => store.claim(requests), { answers: concerns, apart: manyWriters }),
    settle: lane((settlements) => store.settle(settlements), {
      weigh: ({ payload }) => payload?.text.length ?? 0,
      divides: manyWriters,
    }),
    release: lane((settlements) => store.settle(settlements), { apart: manyWriters }),
    get: lane((items) => store.get(items.map(({ id }) => id)), { answers: () => true }),
    emit(event) {
      // A broken observer must not change what happens to an effect, nor, being async, end the process.
      (async () => onEvent?.(event))().catch(() => undefined);
    },
    held: new Map(),
    waiting: new Set(),
    freed: new Map(),
    calls: new Set(),
    giveUps: new Set(),
    warned: new Set(),
    closing: false,
  };
}

/** What stands in the way is the same for all callers of a key, but for whose own claim it is and for who has seen it. */
function concerns(result: ClaimResult, other: ClaimRequest): boolean {
  switch (result.answer) {
    case "taken":
      return !isFree(result.record) && result.record.attemptId !== other.attemptId;
    case "free":
      return (
        result.record.fingerprint === other.fingerprint &&
        result.record.version !== other.seen &&
        result.record.attemptId !== other.attemptId
      );
    case "won":
    case "behind":
    case "fenced":
      return false;
  }
}

const mostFreed = 1_000;

/** The oldest is forgotten first. */
export function remember({ freed }: Kernel, id: string, left: Left): void {
  freed.delete(id);
  freed.set(id, left);
  for (const oldest of freed.keys()) {
    if (freed.size <= mostFreed) return;
    freed.delete(oldest);
  }
}

/** Marks a claim as held by this process until the returned function is called. `giveUp` is for `close`, out of patience. */
export function enter(kernel: Kernel, id: string, giveUp: () => Promise<void>): () => void {
  let through = (): void => undefined;
  const held = new Promise<void>((resolve) => {
    through = resolve;
  });
  kernel.held.set(id, held);
  kernel.giveUps.add(giveUp);
  return () => {
    kernel.giveUps.delete(giveUp);
    if (kernel.held.get(id) === held) kernel.held.delete(id);
    through();
  };
}

export async function underWay<T>(kernel: Kernel, run: () => Promise<T>): Promise<T> {
  const { promise, resolve } = Promise.withResolvers<void>();
  kernel.calls.add(promise);
  try {
    return await run();
  } finally {
    kernel.calls.delete(promise);
    resolve();
  }
}

/**
 * What runs inside of an effect may still be claimed: without it the outer effect could not finish, and would be in doubt.
 *
 * @throws TwiceproofError `CLOSED`
 */
export function refuseWhenClosing(kernel: Kernel): void {
  if (isClosing(kernel)) throw closed();
}

export function isClosing(kernel: Kernel): boolean {
  return kernel.closing && !isInsideEffect();
}

export function closed(): TwiceproofError {
  return new TwiceproofError("CLOSED", "This worker is shutting down and starts nothing new.");
}
