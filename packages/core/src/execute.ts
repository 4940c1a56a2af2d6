import { type Call, event } from "./call.ts";
import { inFrame, type Frame, frames } from "./chain.ts";
import { abandon, read, releaseUnnoticed, settle, type SettleOutcome, type Won } from "./claim.ts";
import { classifyThrow, spend } from "./classify.ts";
import type { Hold } from "./heartbeat.ts";
import { idempotencyKey } from "./id.ts";
import { closed, enter, type Kernel } from "./kernel.ts";
import { inDoubt, notExecutedError, refusal } from "./problems.ts";
import { reach } from "./reach.ts";
import { replay } from "./replay.ts";
import { linkSignals } from "./signals.ts";
import type { Settled } from "./store.ts";

export type Executed<Result> =
  | { readonly type: "value"; readonly value: Result }
  /** Nothing happened: the claim was lost before the body started. */
  | { readonly type: "not-started" }
  /** The body threw, and proved nothing. */
  | { readonly type: "doubt"; readonly error: unknown };

/** Runs the body under its claim and records what became of it. */
export async function execute<Result>(kernel: Kernel, call: Call<Result>, won: Won): Promise<Executed<Result>> {
  const { ref } = won;
  const hold = kernel.heartbeat.hold(ref, {
    kind: "effect",
    leaseMs: call.leaseMs,
    sent: won.sent,
    lostError: () => inDoubt(call),
  });
  const links = linkSignals(hold.signal, call.signal, call.runSignal);
  const around = frames();
  for (const frame of around) frame.nested.add(ref.attemptId);
  const leave = enter(kernel, call.id, async () => {
    hold.stop(closed());
    await abandon(kernel, ref, "shutdown");
  });
  try {
    const alive = await ready(hold, call.leaseMs).catch((error: unknown) => {
      releaseUnnoticed(kernel, ref);
      throw error;
    });
    if (!alive) return { type: "not-started" };
    if (links.signal.aborted) {
      await release(kernel, call, ref, around, "it was called off before it started");
      throw links.signal.reason;
    }
    kernel.emit(event(call, "executing", ref.token));
    return await inFrame(call.id, "effect", async (frame) => {
      let value: Result;
      try {
        value = await call.body({ idempotencyKey: idempotencyKey(call.id), signal: links.signal, id: call.id, token: ref.token });
      } catch (error) {
        return await afterThrow(kernel, call, ref, frame, around, error);
      }
      return { type: "value", value: await record(kernel, call, won, value) };
    });
  } finally {
    hold.drop();
    links.unlink();
    leave();
  }
}

/**
 * Promise 11: in the tick that starts the body, the lease is alive by this worker's clocks, with a tenth of it to spare,
 * or was renewed just now.
 *
 * @throws TwiceproofError `STORE_UNAVAILABLE`; the body did not start, and the claim lapses into a doubt that is none.
 */
async function ready(hold: Hold, leaseMs: number): Promise<boolean> {
  while (hold.leftMs() < leaseMs / 10) {
    if (!(await reach(() => hold.renew(), { withinMs: leaseMs }))) return false;
  }
  return !hold.lost();
}

async function record<Result>(kernel: Kernel, call: Call<Result>, { ref }: Won, value: Result): Promise<Result> {
  const encoded = call.keepResult ? await kernel.codec.encode(value) : ({ kept: false } as const);
  const payload = encoded.kept ? encoded.payload : null;
  const settled = await settle(kernel, ref, { state: "completed", payload }).catch((cause: unknown) => {
    kernel.emit(event(call, "in-doubt", ref.token));
    throw inDoubt(call, { cause, value });
  });
  switch (settled) {
    case "settled":
    case "already":
      kernel.emit(event(call, "completed", ref.token));
      return encoded.kept ? (encoded.value as Result) : value;
    case "disputed":
      kernel.emit(event(call, "disputed", ref.token));
      throw inDoubt(call, { value });
    case "lost": {
      kernel.emit(event(call, "lost", ref.token));
      const now = await read(kernel, call.id).catch(() => null);
      // A verdict said "done" before we did: later callers get the verdict's result, and so does this one.
      if (now?.state === "completed" && now.attemptId === ref.attemptId) return await replay(kernel, call, now);
      throw inDoubt(call, { value, record: now });
    }
  }
}

async function afterThrow<Result>(
  kernel: Kernel,
  call: Call<Result>,
  ref: Won["ref"],
  frame: Frame,
  around: readonly Frame[],
  error: unknown,
): Promise<Executed<Result>> {
  const verdict = classifyThrow(error, call.classify);
  spend(error);
  if (verdict.state === "released" && frame.nested.size === 0) {
    await release(kernel, call, ref, around, verdict.why, error);
    throw notExecutedError(call, verdict.why, error);
  }
  if (verdict.state === "failed") {
    const settled = await settleWhy(kernel, call, ref, "failed", verdict.why, error);
    if (settled === "settled" || settled === "already") kernel.emit(event(call, "failed", ref.token));
    throw refusal(call, verdict.why, error);
  }
  await abandon(kernel, ref, describe(error));
  return { type: "doubt", error };
}

async function release(
  kernel: Kernel,
  call: Call<unknown>,
  ref: Won["ref"],
  around: readonly Frame[],
  why: string,
  error?: unknown,
): Promise<void> {
  // `lost` is no contradiction here: the first answer may have been lost, and somebody else claimed the key since.
  await settleWhy(kernel, call, ref, "released", why, error);
  for (const frame of around) frame.nested.delete(ref.attemptId);
  kernel.emit(event(call, "released", ref.token));
}

async function settleWhy(
  kernel: Kernel,
  call: Call<unknown>,
  ref: Won["ref"],
  state: SettleOutcome["state"],
  why: string,
  error: unknown,
): Promise<Settled> {
  const payload = { format: "json", text: JSON.stringify({ why }) };
  return settle(kernel, ref, { state, payload }).catch((unreachable: unknown) => {
    kernel.emit(event(call, "in-doubt", ref.token));
    throw inDoubt(call, { cause: error ?? unreachable });
  });
}

/** For the history, which operators read; capped, because some errors carry a whole response. */
function describe(error: unknown): string {
  const text = error instanceof Error ? `${error.name}: ${error.message}` : `threw a ${typeof error}`;
  return text.toWellFormed().replaceAll("\0", "").slice(0, 300);
}
