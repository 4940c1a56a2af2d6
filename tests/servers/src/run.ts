import { spawn, spawnSync } from "node:child_process";
import type { Command } from "./program.ts";
import { say } from "./say.ts";

/** A user and group for child processes; empty: the ones of this process. */
export interface Account {
  readonly uid?: number;
  readonly gid?: number;
}

function id(flag: string): number {
  return Number(spawnSync("id", [flag, "nobody"], { encoding: "utf8" }).stdout || Number.NaN);
}

export const isRoot: boolean = process.getuid?.() === 0;

/** Database servers refuse to run as root: for root it is `nobody`. */
export function serverAccount(): Account {
  if (!isRoot) return {};
  const account = { uid: id("-u"), gid: id("-g") };
  if (Number.isNaN(account.uid) || Number.isNaN(account.gid))
    throw new Error("Database servers do not run as root, and this system has no user nobody: run as another user.");
  return account;
}

/** Whether the servers' account may read this file, through every folder above it. */
export function isReadable(path: string, account: Account): boolean {
  return spawnSync("test", ["-r", path], account).status === 0;
}

/** Runs a command to its end; rejects with the last lines of what it wrote. Says how long it takes when it is long. */
export function run({ command, args, env }: Command, label: string, account: Account = {}): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const start = Date.now();
  const seconds = (): string => ((Date.now() - start) / 1000).toFixed(0);
  const ticker = setInterval(() => say(`… ${label} (${seconds()} s)`), 5000);
  const child = spawn(command, args, {
    ...account,
    cwd: "/",
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  const gather = (chunk: Buffer): void => {
    output = (output + chunk).slice(-20_000);
  };
  child.stdout.on("data", gather);
  child.stderr.on("data", gather);
  child.on("error", reject);
  child.on("close", (code, signal) => {
    if (code === 0) resolve(output);
    else reject(new Error(`${label} failed (${signal ?? code}): ${lastLines(output)}`));
  });
  return promise.finally(() => clearInterval(ticker));
}

export function lastLines(text: string): string {
  return text.trim().split("\n").slice(-8).join("\n");
}
