// For test files, like vitest.ts.
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

/** Runs tasks of this worker in processes of their own, straight from the sources, and ends each with its test. */
export function childrenOf(worker: URL): (task: string, ...parameters: readonly string[]) => Child {
  return (task, ...parameters) => {
    const node = ["--conditions=@twiceproof/source", "--disable-warning=ExperimentalWarning"];
    const args = [...node, fileURLToPath(worker), task, ...parameters];
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
  };
}
