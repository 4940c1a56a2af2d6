import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import Database from "better-sqlite3";
import type { Commands, FromWorker, Notice, Outcome, Step, ToWorker, WorkerSetup } from "./protocol.ts";

type Answer<C extends keyof Commands> = Awaited<ReturnType<Commands[C]>>;

export interface Worker {
  readonly pid: number;
  /** The answer, or how it failed; `DIED` when the worker ended first. */
  ask<C extends keyof Commands>(command: C, ...argument: Parameters<Commands[C]>): Promise<Outcome<Answer<C>>>;
  /** Resolves when the worker has got there, once for each time; rejects when it ended before. */
  at(step: Step | Notice): Promise<void>;
  /** Lets it go on from where it stopped; `for good`, it stops there no more. */
  pass(step: Step, howLong?: "for good"): void;
  /** SIGKILL; resolves when the process is gone. */
  kill(): Promise<void>;
  /** SIGSTOP and SIGCONT: the process stands still, with all that it holds but for the database's write lock. */
  freeze(): void;
  thaw(): void;
  terminate(): void;
  /** See `Commands`. Throws when the worker does not answer. */
  trace(): Promise<readonly string[]>;
  stoodStillMs(): Promise<number>;
  /** Its exit code, or the signal that ended it. */
  readonly ended: Promise<number | string>;
}

function need<T>(outcome: Outcome<T>): T {
  if ("code" in outcome) throw new Error(outcome.message);
  return outcome.value;
}

/** For longer than others need for a write. */
function isWriteLocked(file: string): boolean {
  const db = new Database(file, { timeout: 500 });
  try {
    db.exec("begin immediate; rollback");
    return false;
  } catch (error) {
    if ((error as { readonly code?: unknown }).code !== "SQLITE_BUSY") throw error;
    return true;
  } finally {
    db.close();
  }
}

const living = new Set<ChildProcess>();
process.on("exit", () => {
  for (const child of living) child.kill("SIGKILL");
});

/** A process of its own, straight from the sources. What is given to `onEnd` kills it, dead or alive. */
export async function spawnWorker(setup: WorkerSetup, onEnd: (run: () => unknown) => void): Promise<Worker> {
  const path = (name: string): string => fileURLToPath(new URL(name, import.meta.url));
  const flags = ["--conditions=@twiceproof/source", "--disable-warning=ExperimentalWarning"];
  const child = spawn(
    process.execPath,
    [...flags, "--import", new URL("clock.ts", import.meta.url).href, path("worker.ts"), JSON.stringify(setup)],
    {
      stdio: ["ignore", "inherit", "inherit", "ipc"],
      env: {
        ...process.env,
        TWICEPROOF_TEST_CLOCK: JSON.stringify(setup.clock ?? {}),
        // The sources are compiled once and not for each process: a third of the time to start.
        NODE_COMPILE_CACHE: path("../node_modules/.cache/node"),
      },
    },
  );
  living.add(child);
  const ended = new Promise<number | string>((resolve) => {
    child.once("exit", (code, signal) => resolve(signal ?? code ?? "lost"));
  }).finally(() => living.delete(child));
  onEnd(async () => {
    child.kill("SIGKILL");
    await ended;
  });

  const reached: (Step | Notice)[] = [];
  let moved = Promise.withResolvers<void>();
  const asked = new Map<number, (outcome: Outcome<never>) => void>();
  let isOver = false;
  child.on("message", (message: FromWorker) => {
    if (message.type === "answer") {
      asked.get(message.id)?.(message.outcome as Outcome<never>);
      asked.delete(message.id);
      return;
    }
    reached.push(message.step);
    moved.resolve();
    moved = Promise.withResolvers();
  });
  void ended.then(() => {
    isOver = true;
    for (const answer of asked.values()) answer({ code: "DIED", message: "the worker ended" });
    moved.resolve();
  });

  function send(message: ToWorker): void {
    // A worker may die before the message leaves; whoever waits is told by its end.
    if (child.connected) child.send(message, () => undefined);
  }

  let nextId = 0;
  const worker: Worker = {
    pid: child.pid ?? 0,
    ask(command, ...given) {
      return new Promise((resolve) => {
        const id = nextId++;
        if (isOver) return resolve({ code: "DIED", message: "the worker ended" });
        asked.set(id, resolve);
        send({ type: "ask", id, command, arguments: given });
      });
    },
    async at(step) {
      while (!reached.includes(step)) {
        if (isOver) throw new Error(`the worker ended before "${step}"`);
        await moved.promise;
      }
      reached.splice(reached.indexOf(step), 1);
    },
    pass: (step, howLong) => send({ type: "pass", step, forGood: howLong === "for good" }),
    async kill() {
      child.kill("SIGKILL");
      await ended;
    },
    freeze() {
      // One that stopped in the middle of a write would keep the write lock, and all others from the database.
      for (child.kill("SIGSTOP"); isWriteLocked(setup.file); child.kill("SIGSTOP")) {
        child.kill("SIGCONT");
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20);
      }
    },
    thaw: () => void child.kill("SIGCONT"),
    terminate: () => void child.kill("SIGTERM"),
    trace: async () => need(await worker.ask("trace")),
    stoodStillMs: async () => need(await worker.ask("stoodStillMs")),
    ended,
  };
  await worker.at("ready");
  return worker;
}
