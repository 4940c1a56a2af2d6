import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";

/** Nothing in the demo takes this long: whoever waits so long for a message waits in vain. */
const patienceMs = 30_000;

/** A process of the play. What it says is kept, so that nobody can listen too late. */
export interface Actor<Said> {
  /**
   * The first thing it said, or says, that fits.
   *
   * @throws Error when it ends without, or is silent for 30 s, or any process of the play crashes
   */
  heard<Wanted extends Said>(what: string, fits: (said: Said) => said is Wanted): Promise<Wanted>;
  goOn(): void;
  /** SIGKILL, by pid: no handler runs, nothing is flushed. */
  kill(): Promise<void>;
}

const living = new Map<ChildProcess, Promise<unknown>>();
const crash = Promise.withResolvers<never>();
crash.promise.catch(() => undefined);

/** `fork` passes on this process's Node and its flags, `--conditions` among them. */
export function start<Said>(name: string, file: string, args: readonly string[] = []): Actor<Said> {
  const child = fork(new URL(file, import.meta.url), args);
  const said: Said[] = [];
  child.on("message", (message) => said.push(message as Said));
  // "close" comes after the last message, "exit" may come before it.
  const ended = once(child, "close").then(([code]) => {
    living.delete(child);
    if (code !== 0 && !child.killed) crash.reject(new Error(`${name} crashed: see its message above`));
    return "ended" as const;
  });
  living.set(child, ended);

  return {
    async heard(what, fits) {
      const signal = AbortSignal.timeout(patienceMs);
      for (let last: unknown; ; ) {
        const found = said.find(fits);
        if (found !== undefined) return found;
        if (last === "ended") throw new Error(`${name} ended without ${what}`);
        const news = once(child, "message", { signal }).catch(() => {
          throw new Error(`${name}: waited ${patienceMs / 1_000} s for ${what}`);
        });
        last = await Promise.race([news, ended, crash.promise]);
      }
    },
    goOn: () => child.send("go on"),
    async kill() {
      child.kill("SIGKILL");
      await ended;
    },
  };
}

/** Ends what was started here, and nothing else. */
export function killAll(): Promise<unknown> {
  for (const child of living.keys()) child.kill("SIGKILL");
  return Promise.all(living.values());
}

/** For the processes of the play themselves: resolves when the message is on its way. */
export function say<Said>(said: Said): Promise<void> {
  return new Promise((resolve, reject) => {
    if (process.send === undefined) throw new Error("This file is started by main.ts.");
    process.send(said, undefined, undefined, (error) => (error ? reject(error) : resolve()));
  });
}
