import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type OnEnd, run, type Served, serve } from "./processes.ts";

const root = fileURLToPath(new URL("../../../", import.meta.url));

/** The folder of the Next.js application. */
export const example: string = join(root, "examples/vercel-ai");

const next = createRequire(join(example, "package.json")).resolve("next/dist/bin/next");
const turbo = createRequire(join(root, "package.json")).resolve("turbo/bin/turbo");

type Environment = Readonly<Record<string, string>>;

/** `next build`, after the packages that it bundles. */
export async function build(env: Environment): Promise<void> {
  await run([turbo, "run", "build", "--filter=@twiceproof/example-vercel-ai^...", "--ui=stream"], { cwd: root });
  await run([next, "build"], { cwd: example, env });
}

export function start(mode: "start" | "dev", onEnd: OnEnd, env: Environment, cwd: string = example): Promise<Served> {
  return serve([next, mode, "--hostname", "127.0.0.1", "--port", "0"], onEnd, { cwd, env });
}

export function startHono(onEnd: OnEnd, env: Environment): Promise<Served> {
  const args = ["--disable-warning=ExperimentalWarning", "--conditions=@twiceproof/source", "hono.ts"];
  return serve(args, onEnd, { cwd: example, env });
}

interface Look {
  readonly resources: readonly string[];
  readonly timers: number;
  /** How many are open. */
  readonly files: number;
}

export interface Imported {
  readonly before: Look;
  readonly after: Look;
  readonly exports: readonly string[];
}

/** Imports one module of the application, as a build does, in a process of its own. */
export async function importAlone(module: string, env: Environment): Promise<Imported> {
  const script = fileURLToPath(new URL("imports.ts", import.meta.url));
  return JSON.parse(await run([`--import=${countTimers}`, script, module], { env })) as Imported;
}

/** For Node's `--import`. */
export const countTimers: string = new URL("timers.ts", import.meta.url).href;

/** A folder that is removed in the end. */
export function folder(onEnd: OnEnd): string {
  const path = mkdtempSync(join(tmpdir(), "twiceproof-ai-"));
  onEnd(() => rmSync(path, { recursive: true, force: true, maxRetries: 10 }));
  return path;
}
