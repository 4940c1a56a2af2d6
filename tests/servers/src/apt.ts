import { setTimeout as pause } from "node:timers/promises";
import { findProgram } from "./programs.ts";
import { isRoot, run } from "./run.ts";
import { say } from "./say.ts";

const LOCK_MS = 300_000;
const env = {
  DEBIAN_FRONTEND: "noninteractive",
  // Installs no running service: the tests start servers of their own.
  RUNLEVEL: "1",
};

/** Why apt cannot install here, or undefined when it can. */
export function aptObstacle(): string | undefined {
  if (findProgram("apt-get") === undefined) return "this system has no apt-get";
  return isRoot ? undefined : "apt-get needs root";
}

/** The lock of the lists has no wait of its own, the one of dpkg has. */
async function aptGet(args: readonly string[], label: string): Promise<void> {
  const end = Date.now() + LOCK_MS;
  for (;;) {
    try {
      const lock = `DPkg::Lock::Timeout=${LOCK_MS / 1000}`;
      await run({ command: "apt-get", args: ["-o", lock, "-q", ...args], env }, label);
      return;
    } catch (error) {
      if (!/could not get lock|unable to (acquire|lock)/i.test(String(error)) || Date.now() > end) throw error;
      say(`… ${label}: another apt-get runs, waiting for it`);
      await pause(3000);
    }
  }
}

async function install(packages: readonly string[]): Promise<void> {
  const names = packages.join(" ");
  const start = Date.now();
  say(`installing ${names} with apt-get`);
  const args = ["install", "-y", "--no-install-recommends", ...packages];
  try {
    await aptGet(args, `installing ${names}`);
  } catch {
    // A new machine has no lists of packages, or old ones.
    await aptGet(["update"], "updating apt's lists");
    await aptGet(args, `installing ${names}`);
  }
  say(`installed ${names} in ${((Date.now() - start) / 1000).toFixed(0)} s`);
}

let queue: Promise<unknown> = Promise.resolve();

/** Installs packages of the operating system, one call at a time. Only where `aptObstacle` finds nothing. */
export function aptInstall(...packages: readonly string[]): Promise<void> {
  const mine = queue.then(() => install(packages));
  queue = mine.catch(() => undefined);
  return mine;
}
