import { randomUUID } from "node:crypto";
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { flushCompileCache } from "node:module";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { setTimeout as pause } from "node:timers/promises";
import {
  createTwiceproof,
  type EffectContext,
  findTwiceproofError,
  notExecuted,
  type Once,
  type Run,
} from "@twiceproof/core";
import { sqliteStore } from "@twiceproof/store-sqlite";
import { setClock } from "./clock.ts";
import type { Commands, OnceCall, Outcome, Receipt, RunReport, ToWorker, WorkerSetup } from "./protocol.ts";
import { createSteps, say, stepping } from "./steps.ts";

/** One worker process: `node worker.ts <WorkerSetup as JSON>`, told what to do by its parent. */
const setup = JSON.parse(process.argv[2] ?? "") as WorkerSetup;
const steps = createSteps(setup.stopAt ?? []);
const tp = createTwiceproof({
  store: stepping(sqliteStore(setup.file), steps),
  ...(setup.storeTimeoutMs !== undefined && { storeTimeoutMs: setup.storeTimeoutMs }),
});
const delay = monitorEventLoopDelay({ resolution: 5 });

/** The act is one line in a file that only grows. The product knows nothing of that file. */
async function effect(call: OnceCall, { signal, token }: EffectContext): Promise<Receipt> {
  signal.addEventListener("abort", () => steps.notice("aborted"), { once: true });
  await steps.reach("body");
  if (call.blockUntil !== undefined) blockUntil(call.blockUntil);
  if (call.takesMs !== undefined) await pause(Math.random() * call.takesMs);
  if (call.end === "notExecuted") throw notExecuted("the test says so");
  signal.throwIfAborted();
  appendFileSync(setup.counter, `${JSON.stringify({ key: call.key, token, pid: process.pid })}\n`, { flag: "a" });
  await steps.reach("acted");
  if (call.takesMs !== undefined) await pause(Math.random() * call.takesMs);
  if (call.end === "throw") throw new Error("after the act");
  return { key: call.key, pid: process.pid, nonce: randomUUID() };
}

function start(once: Once, call: OnceCall): Promise<Receipt> {
  const { key, end: _end, takesMs: _takesMs, blockUntil: _blockUntil, ...rules } = call;
  return once(key, (context) => effect(call, context), rules);
}

/** Nothing of this process moves meanwhile, but for the operating system's own threads. */
function blockUntil(file: string): void {
  const cell = new Int32Array(new SharedArrayBuffer(4));
  while (!existsSync(file)) Atomics.wait(cell, 0, 0, 10);
}

async function outcomeOf<T>(promise: Promise<T>): Promise<Outcome<T>> {
  try {
    return { value: await promise };
  } catch (error) {
    const ours = findTwiceproofError(error);
    const { code = "none", value: returned, holder, retryAfterMs, queueDepth } = ours ?? {};
    const message = String(error);
    return {
      code,
      message,
      returned,
      ...(holder && { holder }),
      ...(retryAfterMs !== undefined && { retryAfterMs }),
      ...(queueDepth !== undefined && { queueDepth }),
    };
  }
}

/** The first one only says from when the next is counted. */
async function sample(): Promise<void> {
  for (const { count } = delay; delay.count === count; ) await pause(5);
}

const callers = new Map<string, AbortController>();
const runs = new Map<string, Run>();
const leftOver = new Map<string, Promise<Receipt>>();

/** A question and its answer, in a file that two runs at once would mix up. */
async function takeTurn(runId: string, takesMs: number): Promise<readonly string[]> {
  const read = existsSync(setup.transcript) ? readFileSync(setup.transcript, "utf8").split("\n").slice(0, -1) : [];
  appendFileSync(setup.transcript, `question of ${runId}\n`);
  await pause(Math.random() * takesMs);
  appendFileSync(setup.transcript, `answer to ${runId}\n`);
  return read;
}

const commands: Commands = {
  once: (call) => start(tp.once, call),
  async onceAll(calls) {
    const outcomes = new Map<OnceCall, Outcome<Receipt>>();
    const order = calls.map((call) => [Math.random(), call] as const).sort(([a], [b]) => a - b);
    async function oneByOne(): Promise<void> {
      for (let next = order.pop(); next !== undefined; next = order.pop())
        outcomes.set(next[1], await outcomeOf(start(tp.once, next[1])));
    }
    await Promise.all([oneByOne(), oneByOne(), oneByOne(), oneByOne()]);
    return calls.map((call) => outcomes.get(call) as Outcome<Receipt>);
  },
  run({ calls = [], blockUntil: flag, turnTakesMs, leaves, ...options }) {
    const { runId } = options;
    const caller = new AbortController();
    callers.set(runId, caller);
    return tp.withRun({ ...options, signal: caller.signal }, async (run): Promise<RunReport> => {
      runs.set(runId, run);
      run.signal.addEventListener("abort", () => steps.notice("run aborted"), { once: true });
      await steps.reach("run");
      if (flag !== undefined) blockUntil(flag);
      const read = turnTakesMs === undefined ? undefined : await takeTurn(runId, turnTakesMs);
      if (leaves !== undefined) {
        const left = start(run.once, leaves);
        left.catch(() => undefined);
        leftOver.set(runId, left);
      }
      const outcomes: Outcome<Receipt>[] = [];
      for (const call of calls) outcomes.push(await outcomeOf(start(run.once, call)));
      return { token: run.token, outcomes, ...(read && { read }) };
    });
  },
  async abort(runId) {
    callers.get(runId)?.abort(new Error("the client is gone"));
  },
  async left(runId) {
    const left = leftOver.get(runId);
    if (left === undefined) throw new Error("that run left nothing");
    return await left;
  },
  late(runId, call) {
    const run = runs.get(runId);
    if (run === undefined) throw new Error("there was no such run");
    return start(run.once, call);
  },
  exclusive: ({ key, ...options }) =>
    tp.exclusive(
      key,
      async ({ token }) => {
        await steps.reach("lock");
        return { token };
      },
      options,
    ),
  async setClock(offsets) {
    setClock(offsets);
  },
  trace: async () => steps.trace,
  async stoodStillMs() {
    delay.enable();
    await sample();
    const { max } = delay;
    delay.reset();
    await sample();
    return max / 1e6;
  },
};

process.on("message", async (message: ToWorker) => {
  if (message.type === "pass") return steps.pass(message.step, message.forGood);
  const { id, command } = message;
  const run = commands[command] as (...given: readonly unknown[]) => Promise<unknown>;
  say({ type: "answer", id, outcome: await outcomeOf((async () => await run(...message.arguments))()) });
});
process.on("disconnect", () => process.exit());
process.on("SIGTERM", async () => {
  const closing = tp.close({ graceMs: setup.graceMs ?? 0 });
  steps.notice("closing");
  await closing;
  // From here on the process has to end by itself.
  delay.disable();
  process.channel?.unref();
});
// A worker that is killed would leave nothing to the next one.
flushCompileCache();
steps.notice("ready");
