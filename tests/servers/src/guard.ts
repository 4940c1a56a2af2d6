import { spawn } from "node:child_process";

export interface Guard {
  /** The process to end when this one is gone; undefined: none. */
  watch(pid: number | undefined): void;
  /** Removes the directory, and ends the guard. Resolves when it is gone. */
  release(): Promise<void>;
}

// Its input ends with this process, in whatever way this process ends. "0" stands for no process.
const script = `
pid=0
while read -r line; do pid=$line; done
if [ "$pid" != 0 ]; then
  kill -TERM "$pid"
  for i in 1 2 3 4 5 6 7 8 9 10; do kill -0 "$pid" || break; sleep 0.5; done
  kill -KILL "$pid"
fi
rm -rf "$1" || { sleep 1; rm -rf "$1"; }
`;

/** A small process that outlives this one, so that no killed test run leaves a server or its data behind. */
export function startGuard(directory: string): Guard {
  const child = spawn("/bin/sh", ["-c", script, "sh", directory], {
    cwd: "/",
    detached: true,
    stdio: ["pipe", "ignore", "ignore"],
  });
  const gone = new Promise<void>((resolve) => child.once("close", () => resolve()));
  child.stdin.on("error", () => undefined); // It is gone already.
  child.unref();
  (child.stdin as unknown as { unref(): void }).unref();
  const watch = (pid: number | undefined): void => {
    child.stdin.write(`${pid ?? 0}\n`);
  };
  return {
    watch,
    release: async () => {
      watch(undefined);
      child.ref();
      child.stdin.end();
      await gone;
    },
  };
}
