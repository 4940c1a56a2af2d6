import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { ClaimRequest } from "@twiceproof/core/store";

export interface LineSetup {
  /** A URL, or the path of an SQLite file. */
  readonly source: string;
  readonly request: ClaimRequest;
  /** How often it waits; 0 enters the line at once and never asks again. */
  readonly rounds: number;
  readonly ticketLeaseMs: number;
  readonly log: string;
  /** A file that starts all. */
  readonly start: string;
}

export type LineEvent =
  | { readonly what: "ready" }
  /** `line`: whom it saw there just after. */
  | { readonly what: "entered"; readonly ticketId: string; readonly line: readonly string[] }
  | { readonly what: "in" | "out"; readonly ticketId: string; readonly token: number };

export interface LineWorkers {
  readonly folder: string;
  start(setup: Pick<LineSetup, "source" | "request" | "rounds" | "ticketLeaseMs">): LineWorker;
  go(): void;
  events(): readonly LineEvent[];
}

export interface LineWorker {
  kill(): Promise<void>;
  /** Its exit code, or the signal that ended it. */
  readonly ended: Promise<number | string | null>;
}

/** Processes in one folder; all are gone when the test is over. */
export function lineWorkers(onTestFinished: (run: () => Promise<void>) => void): LineWorkers {
  const folder = mkdtempSync(join(tmpdir(), "twiceproof-"));
  const [log, start] = [join(folder, "events.jsonl"), join(folder, "start")];
  const workers: LineWorker[] = [];
  onTestFinished(async () => {
    await Promise.all(workers.map((worker) => worker.kill()));
    rmSync(folder, { recursive: true, force: true });
  });
  return {
    folder,
    start(setup) {
      const file = fileURLToPath(new URL("line-worker.ts", import.meta.url));
      const flags = ["--conditions=@twiceproof/source", "--disable-warning=ExperimentalWarning"];
      const child = spawn(process.execPath, [...flags, file, JSON.stringify({ ...setup, log, start })], {
        stdio: ["ignore", "inherit", "inherit"],
        // The sources are compiled once and not for each process.
        env: {
          ...process.env,
          NODE_COMPILE_CACHE: fileURLToPath(new URL("../node_modules/.cache/node", import.meta.url)),
        },
      });
      const ended = new Promise<number | string | null>((resolve) => {
        child.once("exit", (code, signal) => resolve(signal ?? code));
      });
      const worker: LineWorker = {
        ended,
        async kill() {
          child.kill("SIGKILL");
          await ended;
        },
      };
      workers.push(worker);
      return worker;
    },
    go: () => writeFileSync(start, ""),
    events() {
      const lines = existsSync(log) ? readFileSync(log, "utf8").split("\n").slice(0, -1) : [];
      return lines.map((line) => JSON.parse(line) as LineEvent);
    },
  };
}
