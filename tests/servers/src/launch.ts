import { spawn } from "node:child_process";
import { closeSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import type { Guard } from "./guard.ts";
import type { Command } from "./program.ts";
import { lastLines, serverAccount } from "./run.ts";
import { anyRuns, killTree } from "./tree.ts";

const START_MS = 120_000;
const END_MS = 30_000;

export interface Launched {
  readonly pid: number;
  /** SIGKILL to all of its processes. */
  kill(): Promise<void>;
  /** An orderly end; by force when it takes too long. Does nothing when it has ended. */
  end(signal: NodeJS.Signals): Promise<void>;
}

interface Launch {
  readonly command: Command;
  /** The server's own, for its log too. */
  readonly directory: string;
  readonly guard: Guard;
  /** Asks the server; false when a stranger answers at its address. */
  readonly isOurs: () => Promise<boolean>;
}

async function until(condition: () => boolean, boundMs: number): Promise<boolean> {
  for (const end = Date.now() + boundMs; Date.now() < end; await pause(10)) if (condition()) return true;
  return condition();
}

/** Starts the process; resolves when the server answers at its address, and is ours. */
export async function launch({ command, directory, guard, isOurs }: Launch): Promise<Launched> {
  const logFile = join(directory, "log");
  const log = openSync(logFile, "a");
  const written = readFileSync(logFile, "utf8").length;
  const child = spawn(command.command, command.args, {
    ...serverAccount(),
    cwd: directory,
    env: { ...process.env, TMPDIR: directory, ...command.env },
    // A session of its own: Ctrl-C at the terminal ends the tests, which then end it.
    detached: true,
    stdio: ["ignore", log, log],
  });
  closeSync(log);
  let ended: string | undefined;
  child.once("error", (error) => (ended ??= error.message));
  child.once("exit", (code, signal) => {
    ended ??= `${signal ?? code}`;
    guard.watch(undefined);
  });
  child.unref();
  const pid = child.pid ?? 0;
  if (pid !== 0) guard.watch(pid);

  const kill = async (): Promise<void> => {
    if (ended !== undefined) return;
    const children = killTree(pid);
    if (!(await until(() => ended !== undefined && !anyRuns(children), END_MS)))
      throw new Error(`process ${pid} or one of its children ${children.join(" ")} did not end on SIGKILL`);
  };
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    if (ended !== undefined) return;
    process.kill(pid, signal);
    if (!(await until(() => ended !== undefined, END_MS))) await kill();
  };

  let last: unknown;
  for (const deadline = Date.now() + START_MS; ended === undefined; await pause(25)) {
    try {
      if (await isOurs()) return { pid, kill, end };
      last = new Error("another server answers at this port");
    } catch (error) {
      last = error;
    }
    if (Date.now() > deadline) {
      await kill();
      break;
    }
  }
  const output = lastLines(readFileSync(logFile, "utf8").slice(written));
  throw new Error(`${command.command} did not start (${ended ?? "too slow"}): ${output || String(last)}`);
}
