import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";

interface Stat {
  readonly pid: number;
  readonly parent: number;
  /** Ended, and not yet noticed by whoever has to: in a container that may be nobody. */
  readonly zombie: boolean;
}

function readStat(pid: number): Stat | undefined {
  try {
    // "pid (name) state parent …", and a name may contain anything.
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1").replace(/^.*\)/s, "");
    const [state, parent] = stat.trim().split(" ");
    return { pid, parent: Number(parent), zombie: state === "Z" || state === "X" };
  } catch {
    return undefined; // It ended while we looked.
  }
}

function processes(): Stat[] {
  if (existsSync("/proc/self/stat")) {
    const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
    return pids.flatMap((pid) => readStat(Number(pid)) ?? []);
  }
  const { stdout } = spawnSync("ps", ["-A", "-o", "pid=,ppid=,stat="], { encoding: "utf8" });
  return stdout.split("\n").flatMap((line) => {
    const [pid, parent, state] = line.trim().split(/\s+/);
    return pid ? { pid: Number(pid), parent: Number(parent), zombie: state?.startsWith("Z") ?? false } : [];
  });
}

/** Of these processes, whether one still runs. */
export function anyRuns(pids: readonly number[]): boolean {
  if (pids.length === 0) return false;
  return processes().some(({ pid, zombie }) => !zombie && pids.includes(pid));
}

/**
 * SIGKILL to a server and to the processes that it made, PostgreSQL's backends; returns their ids. The server is
 * stopped first: it must not see its children die, and make new ones.
 */
export function killTree(pid: number): number[] {
  process.kill(pid, "SIGSTOP");
  const children = processes().flatMap((it) => (it.parent === pid ? it.pid : []));
  for (const each of [pid, ...children]) {
    try {
      process.kill(each, "SIGKILL");
    } catch {
      // It ended by itself.
    }
  }
  return children;
}
