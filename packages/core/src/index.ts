import "./node-version.ts";

export {
  type Answer,
  type Classify,
  done,
  doneWithoutResult,
  notDone,
  notExecuted,
  oneRequest,
  refused,
  unknown,
  type Verdict,
} from "./classify.ts";
export type { CodecType } from "./codec.ts";
export type { DecidedBy, Doubt, DoubtEvent, DoubtQuery, Doubts, VerdictOutcome } from "./doubts.ts";
export {
  type AnyEffect,
  defineEffect,
  type Effect,
  type EffectContext,
  type EffectRules,
  type ReconcileContext,
} from "./effect.ts";
export {
  type ErrorCode,
  findTwiceproofError,
  type HolderFacts,
  isInDoubt,
  isKeyReused,
  isLost,
  isNotExecuted,
  isRefused,
  isRunning,
  isThreadBusy,
  isTwiceproofError,
  TwiceproofError,
} from "./errors.ts";
export type { TwiceproofEvent } from "./events.ts";
export type { ExclusiveContext, ExclusiveOptions } from "./exclusive.ts";
export { type ErrorResponseOptions, errorResponse } from "./http.ts";
export { memoryStore } from "./memory-store.ts";
export type { Once, OnceOptions } from "./once.ts";
export type { CallOptions } from "./prepare.ts";
export type { Recorded, RecordedOf } from "./recorded.ts";
export type { Run, RunOptions } from "./run.ts";
export type { ClaimRecord, ClaimRef, DoubtRef, HistoryEvent, Store } from "./store.ts";
export {
  createTwiceproof,
  type Twiceproof,
  type TwiceproofOptions,
} from "./twiceproof.ts";
