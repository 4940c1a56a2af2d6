import { type Call, event } from "./call.ts";
import { type Frame, inFrame, type Nesting } from "./chain.ts";
import { abandon, read, releaseUnnoticed, type SettleOutcome, settle, type Won } from "./claim.ts";
import { classifyThrow, isVerdictError, spend } from "./classify.ts";
import { idempotencyKey } from "./id.ts";
import { closed, enter, isClosing, type Kernel } from "./kernel.ts";
import { askedToStop, inDoubt, notExecutedError, refusal } from "./problems.ts";
import { ready } from "./ready.ts";
import { replay } from "./replay.ts";
import { linkSignals } from "./signals.ts";
import type { Settled } from "./store.ts";
import { encodeWhy } from "./why.ts";

export type Executed<Result> =
  | { readonly type: "value"; readonly value: Result }
  /** Nothing happened: the claim was lost before the body started. */
  | { readonly type: "not-started" }
  /** The body threw, and proved nothing. */
  | { readonly type: "doubt"; readonly error: unknown };

/** Runs the body under its claim and records what became of it. */
export async function execute<Result>(
  kernel: Kernel,
  call: Call<Result>,
  won: Won,
  nesting: Nesting,
): Promise<Executed<Result>> {
  const { ref } = won;
  nesting.claimed = true;
  const hold = kernel.heartbeat.hold(ref, {
    kind: "effect",
    leaseMs: call.leaseMs,
    sent: won.sent,
    lostError: () => inDoubt(call),
    stopError: () => askedToStop("EFFECT_IN_DOUBT", call.id),
  });
  const links = linkSignals(hold.signal, call.signal, call.runSignal);
  const leave = enter(kernel, call.id, async () => {
    hold.stop(closed());
    await abandon(kernel, ref, "shutdown");
  });
  try {
    const alive = (): Promise<boolean> =>
      ready(hold, call.leaseMs, kernel.storeTimeoutMs).catch((error: unknown) => {
        releaseUnnoticed(kernel, ref);
        throw error;
      });
    if (!(await alive())) return { type: "not-started" };
    if (links.signal.aborted || isClosing(kernel)) {
      await release(kernel, call, ref, nesting, "it was called off before it started");
      throw links.signal.aborted ? links.signal.reason : closed();
    }
    kernel.emit(event(call, "executing", ref.token));
    // An observer that blocks takes from the lease.
    if (!(await alive())) return { type: "not-started" };
    return await inFrame(call.id, "effect", async (frame) => {
      let value: Result;
      try {
        value = await call.body({
          idempotencyKey: idempotencyKey(call.id),
          signal: links.signal,
          id: call.id,
          token: ref.token,
        });
        // Said by `return` where `throw` was meant: taken as meant.
        if (isVerdictError(value)) throw value;
      } catch (error) {
        return await afterThrow(kernel, call, ref, frame, nesting, error);
      } finally {
        // A heartbeat that crosses with the record finds the claim settled: no news for what the body left running.
        links.unlink();
      }
      return { type: "value", value: await record(kernel, call, won, value) };
    });
  } finally {
    hold.drop();
    links.unlink();
    leave();
  }
}

async function record<Result>(kernel: Kernel, call: Call<Result>, { ref }: Won, value: Result): Promise<Result> {
  const encoded = call.keepResult ? await call.codec.encode(value) : ({ kept: false, why: undefined } as const);
  const payload = encoded.kept ? encoded.payload : null;
  const settled = await settle(kernel, ref, { state: "completed", payload }).catch((cause: unknown) => {
    kernel.emit(event(call, "in-doubt", ref.token));
    throw inDoubt(call, { cause, value });
  });
  switch (settled) {
    case "settled":
    case "already":
      kernel.emit(event(call, "completed", ref.token));
      if (!encoded.kept && encoded.why !== undefined) notKept(kernel, call, ref.token, encoded.why);
      return encoded.kept ? (encoded.value as Result) : value;
    case "disputed":
      for (const type of ["disputed", "in-doubt"] as const) kernel.emit(event(call, type, ref.token));
      throw inDoubt(call, { value });
    case "lost": {
      kernel.emit(event(call, "lost", ref.token));
      const now = await read(kernel, call.id).catch(() => null);
      // A verdict said "done" before we did: later callers get the verdict's result, and so does this one.
      if (now?.state === "completed" && now.attemptId === ref.attemptId) return await replay(call, now);
      kernel.emit(event(call, "in-doubt", ref.token));
      throw inDoubt(call, { value });
    }
  }
}

/** Found out by a second caller only, weeks later perhaps: so it is said now, once for each name. */
function notKept(kernel: Kernel, call: Call<unknown>, token: number, why: string): void {
  kernel.emit(event(call, "result-not-kept", token));
  if (kernel.warned.has(call.name)) return;
  kernel.warned.add(call.name);
  process.emitWarning(
    `The result of "${call.name}" is not recorded: ${why}. Later callers get EFFECT_RESULT_UNAVAILABLE.`,
    {
      type: "TwiceproofWarning",
      code: "TWICEPROOF_RESULT_NOT_KEPT",
    },
  );
}

async function afterThrow<Result>(
  kernel: Kernel,
  call: Call<Result>,
  ref: Won["ref"],
  frame: Frame,
  nesting: Nesting,
  error: unknown,
): Promise<Executed<Result>> {
  const verdict = classifyThrow(error, call.classify);
  spend(error);
  if (verdict.state === "released" && frame.nested.size === 0) {
    const settled = await release(kernel, call, ref, nesting, verdict.why, error);
    if (settled === "disputed") return { type: "doubt", error };
    throw notExecutedError(call, verdict.why, error);
  }
  if (verdict.state === "failed") {
    const settled = await settleWhy(kernel, call, ref, "failed", verdict.why, error);
    if (settled === "settled" || settled === "already") {
      kernel.emit(event(call, "failed", ref.token));
      throw refusal(call, verdict.why, error);
    }
    // A verdict came first: this caller is told what is on the record, as later ones are.
    kernel.emit(event(call, "lost", ref.token));
    return { type: "doubt", error };
  }
  await abandon(kernel, ref, describe(error));
  return { type: "doubt", error };
}

async function release(
  kernel: Kernel,
  call: Call<unknown>,
  ref: Won["ref"],
  nesting: Nesting,
  why: string,
  error?: unknown,
): Promise<Settled> {
  const settled = await settleWhy(kernel, call, ref, "released", why, error);
  // `lost` is no contradiction here: the first answer may have been lost, and somebody else claimed the key since. But a
  // verdict may have said "done": then it counts against the bodies around it, as it does when an earlier attempt did.
  nesting.claimed = settled === "lost" || settled === "disputed";
  kernel.emit(event(call, settled === "lost" || settled === "disputed" ? settled : "released", ref.token));
  return settled;
}

async function settleWhy(
  kernel: Kernel,
  call: Call<unknown>,
  ref: Won["ref"],
  state: SettleOutcome["state"],
  why: string,
  error: unknown,
): Promise<Settled> {
  return settle(kernel, ref, { state, payload: encodeWhy(why) }).catch((unreachable: unknown) => {
    kernel.emit(event(call, "in-doubt", ref.token));
    throw inDoubt(call, { cause: error ?? unreachable });
  });
}

/** For the history, which operators read; capped, because some errors carry a whole response. */
function describe(error: unknown): string {
  try {
    const text = error instanceof Error ? `${error.name}: ${error.message}` : `threw a ${typeof error}`;
    return text.slice(0, 300).toWellFormed().replaceAll("\0", "");
  } catch {
    return "threw an error that cannot be read";
  }
}
