import { type Call, event } from "./call.ts";
import { type Nesting, refuseSelfWait } from "./chain.ts";
import { claim, read } from "./claim.ts";
import { jittered, pause, stopwatch } from "./clock.ts";
import type { TwiceproofError } from "./errors.ts";
import { execute } from "./execute.ts";
import { closed, isClosing, type Kernel, refuseWhenClosing } from "./kernel.ts";
import { inDoubt, keyReused, notExecutedError, refusal, running } from "./problems.ts";
import { runLost } from "./problems-lock.ts";
import { resolveDoubt } from "./reconcile.ts";
import { replay } from "./replay.ts";
import { linkSignals } from "./signals.ts";
import type { ClaimRecord } from "./store.ts";
import { decodeWhy } from "./why.ts";

const firstPollMs = 50;
const lastPollMs = 1_000;

/**
 * Claims, executes and records; or waits for whoever does, and gives back what was recorded. A body runs at most once
 * for each claim won, and a claim that nobody settled is never won again.
 */
export async function perform<Result>(kernel: Kernel, call: Call<Result>, nesting: Nesting): Promise<Result> {
  refuseSelfWait(call.id, `The effect "${call.name}"`);
  const waited = stopwatch();
  for (;;) {
    refuseWhenClosing(kernel);
    call.signal?.throwIfAborted();
    const ended = await tryOnce(kernel, call, nesting, () => call.waitMs - waited());
    if (ended !== "again") return ended.value;
  }
}

async function tryOnce<Result>(
  kernel: Kernel,
  call: Call<Result>,
  nesting: Nesting,
  leftMs: () => number,
): Promise<Met<Result>> {
  const claimed = await claim(kernel, { ...wantedBy(call), kind: "effect" });
  switch (claimed.answer) {
    case "fenced":
      throw runLost(call.runId);
    case "behind":
      // Of locks only.
      return "again";
    case "taken":
      return await meet(kernel, call, await outlast(kernel, call, claimed.record, leftMs), leftMs);
    case "won": {
      const executed = await execute(kernel, call, claimed, nesting);
      switch (executed.type) {
        case "value":
          return executed;
        case "doubt":
          return { value: await afterOwnDoubt(kernel, call, executed.error) };
        case "not-started":
          return "again";
      }
    }
  }
}

function wantedBy(call: Call<unknown>) {
  const { id, key, name, fingerprint, scope, turn, runId, fence, leaseMs } = call;
  return { id, key, name, fingerprint, scope, turn, runId, fence, leaseMs };
}

/** Waits while somebody else is at it. Answers the record as it stands then, or null when it is gone. */
async function outlast(
  kernel: Kernel,
  call: Call<unknown>,
  first: ClaimRecord,
  leftMs: () => number,
): Promise<ClaimRecord | null> {
  const { signal, unlink } = linkSignals(call.signal, call.runSignal);
  try {
    let record: ClaimRecord | null = first;
    for (let pollMs = firstPollMs; record !== null && isRunningElsewhere(record, call); pollMs *= 1.5) {
      if (leftMs() <= 0) throw running(call, record);
      const forMs = Math.min(jittered(Math.min(pollMs, lastPollMs)), leftMs());
      await pause(forMs, { signal, until: kernel.held.get(call.id) });
      signal.throwIfAborted();
      // Not CLOSED, which says that nothing was started: somebody else is at it.
      if (isClosing(kernel)) throw running(call, record, closed());
      record = await read(kernel, call.id);
    }
    return record;
  } finally {
    unlink();
  }
}

function isRunningElsewhere(record: ClaimRecord, call: Call<unknown>): boolean {
  return record.state === "claimed" && record.fingerprint === call.fingerprint;
}

/** `again`: the way may be free now. */
type Met<Result> = { readonly value: Result } | "again";

/** What a record that stands in the way means for this caller. */
async function meet<Result>(
  kernel: Kernel,
  call: Call<Result>,
  record: ClaimRecord | null,
  leftMs: () => number,
): Promise<Met<Result>> {
  if (record === null) return "again";
  if (record.fingerprint !== call.fingerprint) throw keyReused(call, record);
  switch (record.state) {
    case "completed": {
      const value = await replay<Result>(call, record);
      kernel.emit(event(call, "replayed", record.token));
      return { value };
    }
    case "failed":
      throw refusal(call, await decodeWhy(kernel.codec, record.payload));
    case "in-doubt": {
      const decided = await resolveDoubt(kernel, call, record, leftMs);
      if (decided.open) throw doubt(kernel, call, record, decided.cause);
      return "again";
    }
    case "claimed":
    case "released":
    case "lapsed":
      return "again";
  }
}

/**
 * This caller's own body threw. Evidence may settle it at once; when the evidence says "not done", the caller is told so:
 * nothing is run a second time inside one call.
 */
async function afterOwnDoubt<Result>(kernel: Kernel, call: Call<Result>, cause: unknown): Promise<Result> {
  if (call.kind === "idempotent") throw cause;
  const waited = stopwatch();
  const leftMs = (): number => call.waitMs - waited();
  let record = await read(kernel, call.id).catch(() => null);
  if (call.reconcile !== undefined && record?.state === "in-doubt") {
    // It rejects only when the caller has gone: the doubt is told all the same.
    await resolveDoubt(kernel, call, record, leftMs).catch(() => undefined);
    record = await read(kernel, call.id).catch(() => null);
  }
  if (record?.state === "released") throw notExecutedError(call, "it is on record that it did not happen", cause);
  const decided = record?.state === "completed" || record?.state === "failed";
  const met = decided ? await meet(kernel, call, record, leftMs) : "again";
  if (met !== "again") return met.value;
  throw doubt(kernel, call, record, cause);
}

function doubt(kernel: Kernel, call: Call<unknown>, record: ClaimRecord | null, cause: unknown): TwiceproofError {
  kernel.emit(event(call, "in-doubt", record?.token ?? 0));
  return inDoubt(call, { record, ...(cause !== undefined && { cause }) });
}
