import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { afterAll, vi } from "vitest";

/** Machines with two busy cores are slow: bounds are wide, and nothing waits for them to pass. */
vi.setConfig({ testTimeout: 120_000, hookTimeout: 240_000 });

/** What ends with the test, or with the file. */
export type OnEnd = (run: () => void | Promise<void>) => void;

/** What ends with a file or a group of tests, last first. Unlike `afterAll` it may be called in hooks. */
export function atEnd(): OnEnd {
  const ends: (() => void | Promise<void>)[] = [];
  afterAll(async () => {
    for (const run of ends) await run();
  });
  return (run) => void ends.unshift(run);
}

export interface Launch {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
}

export interface Served {
  readonly url: string;
  /** SIGKILL; resolves when the process is gone. */
  kill(): Promise<void>;
  /** SIGTERM, as a deploy sends it. */
  stop(): Promise<void>;
}

const living = new Set<ChildProcess>();
process.on("exit", () => {
  for (const child of living) child.kill();
});

function launch(args: readonly string[], { cwd, env }: Launch): { child: ChildProcess; output: () => string } {
  // Next refuses to be told that it is in a test.
  const { NODE_ENV: _, VITEST: __, ...inherited } = process.env;
  const child = spawn(process.execPath, args, {
    cwd,
    env: { ...inherited, NODE_NO_WARNINGS: "1", NEXT_TELEMETRY_DISABLED: "1", TURBO_TELEMETRY_DISABLED: "1", ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  living.add(child);
  child.once("close", () => living.delete(child));
  let text = "";
  for (const stream of [child.stdout, child.stderr])
    stream?.on("data", (chunk: Buffer) => {
      text += chunk;
    });
  return { child, output: () => text };
}

/** Runs this Node to its end, and gives what it wrote; rejects with that when it fails. */
export async function run(args: readonly string[], options: Launch = {}): Promise<string> {
  const { child, output } = launch(args, options);
  const [code] = await once(child, "close");
  if (code !== 0) throw new Error(`node ${args.join(" ")} failed (${code}):\n${output()}`);
  return output();
}

/** Starts this Node as a server: it is up when it has written its address. */
export async function serve(args: readonly string[], onEnd: OnEnd, options: Launch = {}): Promise<Served> {
  const { child, output } = launch(args, options);
  const closed = once(child, "close").then(() => "closed" as const);
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    child.kill(signal);
    await closed;
  };
  // Not SIGKILL: `next dev` is two processes, and ends the other one.
  onEnd(() => end("SIGTERM"));
  for (let last: unknown; ; ) {
    const [url] = /http:\/\/[\w.]+:\d+/.exec(output()) ?? [];
    if (url !== undefined) return { url, kill: () => end("SIGKILL"), stop: () => end("SIGTERM") };
    if (last === "closed") throw new Error(`node ${args.join(" ")} ended:\n${output()}`);
    last = await Promise.race([...[child.stdout, child.stderr].map((it) => it && once(it, "data")), closed]);
  }
}
