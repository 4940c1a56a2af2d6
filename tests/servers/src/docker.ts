import { randomBytes } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { freePort } from "./port.ts";
import { probe } from "./probe.ts";
import { run } from "./run.ts";
import { say } from "./say.ts";
import type { OwnServer, ServerName, StartOptions } from "./server.ts";

const START_MS = 120_000;
const file = fileURLToPath(new URL("../../../compose.yaml", import.meta.url));

/** Why Docker cannot be used here, or undefined when it can. */
export async function dockerObstacle(): Promise<string | undefined> {
  try {
    await run({ command: "docker", args: ["compose", "version"] }, "docker compose version");
    await run({ command: "docker", args: ["info"] }, "docker info");
    return undefined;
  } catch {
    return "Docker does not run here";
  }
}

/** The image opens its port for a moment while it makes its data, and once more for good. */
async function answers(url: string): Promise<string> {
  for (const end = Date.now() + START_MS; ; await pause(250)) {
    try {
      return (await probe(url)).version;
    } catch (error) {
      if (Date.now() > end) throw error;
    }
  }
}

/** The server of this name in compose.yaml, in a compose project of its own. */
export async function startDocker(name: ServerName, options: StartOptions): Promise<OwnServer> {
  const password = randomBytes(16).toString("hex");
  const port = await freePort();
  const postgres = name.startsWith("postgres");
  const flags = Object.entries(options.settings ?? {}).map(
    ([key, value]) => `${postgres ? "-c " : "--"}${key}=${value}`,
  );
  const env = { TWICEPROOF_PASSWORD: password, TWICEPROOF_PORT: `${port}`, TWICEPROOF_FLAGS: flags.join(" ") };
  const project = `twiceproof-${randomBytes(6).toString("hex")}`;
  const compose = (...args: readonly string[]): Promise<string> =>
    run({ command: "docker", args: ["compose", "-f", file, "-p", project, ...args], env }, `docker compose ${args[0]}`);
  const stop = async (): Promise<void> => {
    await compose("down", "--volumes", "--timeout", "10");
  };
  const url = postgres
    ? `postgresql://postgres:${password}@127.0.0.1:${port}/postgres`
    : `mysql://root:${password}@127.0.0.1:${port}/mysql`;
  const readPid = async (): Promise<number> => {
    const container = (await compose("ps", "--all", "--quiet", name)).trim();
    const args = ["inspect", "--format", "{{.State.Pid}}", container];
    return Number(await run({ command: "docker", args }, "docker inspect"));
  };
  say(`starting ${name} with Docker`);
  try {
    await compose("up", "--detach", name);
    const version = await answers(url);
    let pid = await readPid();
    return {
      name,
      version,
      url,
      get pid() {
        return pid;
      },
      kill: async () => {
        await compose("kill", "--signal", "SIGKILL", name);
      },
      restart: async () => {
        await compose("stop", "--timeout", "10", name);
        await compose("start", name);
        await answers(url);
        pid = await readPid();
      },
      stop,
    };
  } catch (error) {
    await stop().catch(() => undefined); // The first failure says more.
    throw error;
  }
}
