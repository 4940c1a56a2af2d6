import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";

export interface Child {
  /** The next line of its output; rejects when it ended without one. */
  line(): Promise<string>;
  /** Whatever it waits for. */
  go(): void;
}

/** Runs `worker.ts` in a process of its own, straight from the sources, and ends it with the test. */
export function child(task: string, ...parameters: readonly string[]): Child {
  const worker = fileURLToPath(new URL("./worker.ts", import.meta.url));
  const args = [
    "--conditions=@twiceproof/source",
    "--disable-warning=ExperimentalWarning",
    worker,
    task,
    ...parameters,
  ];
  const running = spawn(process.execPath, args, { stdio: ["pipe", "pipe", "inherit"] });
  const lines = createInterface({ input: running.stdout })[Symbol.asyncIterator]();
  onTestFinished(() => void running.kill());
  return {
    async line() {
      const { done, value } = await lines.next();
      if (done) throw new Error(`the process for "${task}" ended early`);
      return value;
    },
    go: () => void running.stdin.write("go\n"),
  };
}
