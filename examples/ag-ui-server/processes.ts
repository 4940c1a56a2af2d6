import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";

export interface Server {
  readonly url: string;
  /** SIGCONT: it goes on, after a SIGSTOP. */
  wake(): void;
}

/** A server takes seconds to start, on a busy machine: so long it is waited for. */
const patienceMs = 60_000;
const living = new Map<ChildProcess, Promise<unknown>>();

/** Starts a server, with this process's Node and its flags, and waits until it listens. */
export async function startServer(environment: Readonly<Record<string, string>>): Promise<Server> {
  const child = fork(new URL("server.ts", import.meta.url), { env: { ...process.env, ...environment } });
  const closed = once(child, "close").then(() => living.delete(child));
  living.set(child, closed);
  const said = once(child, "message", { signal: AbortSignal.timeout(patienceMs) });
  const url = await Promise.race([said.then(([first]) => String(first)), closed.then(() => undefined)]);
  // Its message, if it had one, is on stderr.
  if (url === undefined) throw new Error("a server did not start");
  return { url, wake: () => void child.kill("SIGCONT") };
}

/** Ends what was started here, and nothing else. */
export function killServers(): Promise<unknown> {
  for (const child of living.keys()) child.kill("SIGKILL");
  return Promise.all(living.values());
}
