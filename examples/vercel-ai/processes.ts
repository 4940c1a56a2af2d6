import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

const here = fileURLToPath(new URL(".", import.meta.url));
const patienceMs = 60_000;
const living = new Set<ChildProcess>();
process.once("exit", () => {
  for (const child of living) child.kill("SIGKILL");
});
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, () => process.exit(1));

export interface Server {
  readonly url: string;
  /** SIGTERM; resolves when the process is gone. */
  stop(): Promise<void>;
}

type Environment = Readonly<Record<string, string>>;

/** Runs this Node with these arguments, to its end. */
export async function run(name: string, args: readonly string[]): Promise<void> {
  const child = launch(args, {});
  const output = gather(child);
  const [code] = await once(child, "close");
  if (code !== 0) throw new Error(`${name} failed:\n${output.text}`);
}

/** Starts this Node with these arguments; it is ready when it has written its address. */
export async function serve(name: string, args: readonly string[], environment: Environment = {}): Promise<Server> {
  const child = launch(args, environment);
  const output = gather(child);
  const closed = once(child, "close");
  const signal = AbortSignal.timeout(patienceMs);
  const over = Promise.race([closed, once(signal, "abort")]).then(() => "over" as const);
  for (let last: unknown; ; ) {
    const [url] = /http:\/\/[\w.]+:\d+/.exec(output.text) ?? [];
    if (url !== undefined)
      return {
        url,
        async stop() {
          child.kill();
          await closed;
        },
      };
    if (last === "over") throw new Error(`${name} did not start:\n${output.text}`);
    last = await Promise.race([once(child.stdout ?? child, "data"), over]);
  }
}

function launch(args: readonly string[], environment: Environment): ChildProcess {
  const child = spawn(process.execPath, args, {
    cwd: here,
    env: { ...process.env, NEXT_TELEMETRY_DISABLED: "1", ...environment },
    stdio: ["ignore", "pipe", "pipe"],
  });
  living.add(child);
  child.once("close", () => living.delete(child));
  return child;
}

function gather(child: ChildProcess): { text: string } {
  const output = { text: "" };
  const add = (chunk: Buffer): void => {
    output.text += chunk;
  };
  child.stdout?.on("data", add);
  child.stderr?.on("data", add);
  return output;
}
