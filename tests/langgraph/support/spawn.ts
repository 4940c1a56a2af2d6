import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { Dispatch, FromWorker, Notice, Outcome, ToWorker, WorkerSetup } from "./protocol.ts";

export interface Worker {
  readonly pid: number;
  /** Rejects when the worker ends first. */
  dispatch(dispatch: Dispatch): Promise<Outcome>;
  /** Resolves when the worker has got there, once for each time; rejects when it ended before. */
  at(notice: Notice): Promise<void>;
  /** Lets the tool on. */
  goOn(): void;
  /** SIGKILL; resolves when the process is gone. */
  kill(): Promise<void>;
  /** SIGSTOP and SIGCONT: the process stands still, with everything that it holds. */
  freeze(): void;
  thaw(): void;
}

const living = new Set<ChildProcess>();
process.on("exit", () => {
  for (const child of living) child.kill("SIGKILL");
});

/** How a process of these tests is started: from the sources, which are compiled once and not for each process. */
export const nodeFlags: readonly string[] = [
  "--conditions=@twiceproof/source",
  "--disable-warning=ExperimentalWarning",
];
export const nodeEnv = {
  ...process.env,
  NODE_COMPILE_CACHE: fileURLToPath(new URL("../../node_modules/.cache/node", import.meta.url)),
  LANGSMITH_TRACING: "false",
};

/** A process of its own. What is given to `onEnd` kills it, dead or alive. */
export async function spawnWorker(setup: WorkerSetup, onEnd: (run: () => unknown) => void): Promise<Worker> {
  const file = fileURLToPath(new URL("worker.ts", import.meta.url));
  const child = spawn(process.execPath, [...nodeFlags, file, JSON.stringify(setup)], {
    stdio: ["ignore", "inherit", "inherit", "ipc"],
    env: nodeEnv,
  });
  living.add(child);
  let isOver = false;
  let moved = Promise.withResolvers<void>();
  const reached: Notice[] = [];
  const asked = new Map<number, PromiseWithResolvers<Outcome>>();
  function move(): void {
    moved.resolve();
    moved = Promise.withResolvers();
  }
  // "close" comes after the last message, "exit" may come before it.
  const ended = new Promise<void>((resolve) => child.once("close", () => resolve())).then(() => {
    living.delete(child);
    isOver = true;
    for (const { reject } of asked.values()) reject(new Error("the worker ended"));
    move();
  });
  child.on("message", (message: FromWorker) => {
    switch (message.type) {
      case "at":
        reached.push(message.notice);
        return move();
      case "outcome":
        return asked.get(message.id)?.resolve(message.outcome);
    }
  });
  function send(message: ToWorker): void {
    // A worker may die before the message leaves; whoever waits is told by its end.
    if (child.connected) child.send(message, () => undefined);
  }

  let nextId = 0;
  const worker: Worker = {
    pid: child.pid ?? 0,
    dispatch(dispatch) {
      const id = nextId++;
      const answer = Promise.withResolvers<Outcome>();
      // A test that kills the worker does not ask what became of the dispatch.
      answer.promise.catch(() => undefined);
      if (isOver) answer.reject(new Error("the worker ended"));
      asked.set(id, answer);
      send({ type: "dispatch", id, dispatch });
      return answer.promise;
    },
    async at(notice) {
      while (!reached.includes(notice)) {
        if (isOver) throw new Error(`the worker ended before "${notice}"`);
        await moved.promise;
      }
      reached.splice(reached.indexOf(notice), 1);
    },
    goOn: () => send({ type: "go on" }),
    async kill() {
      child.kill("SIGKILL");
      await ended;
    },
    freeze: () => void child.kill("SIGSTOP"),
    thaw: () => void child.kill("SIGCONT"),
  };
  onEnd(() => worker.kill());
  await worker.at("ready");
  return worker;
}
