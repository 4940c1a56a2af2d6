import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Program } from "./program.ts";
import { run, serverAccount } from "./run.ts";

const durable = { fsync: "on", synchronous_commit: "on", full_page_writes: "on" };
const small = { shared_buffers: "32MB", max_connections: "200", max_wal_size: "256MB" };
const local = { listen_addresses: "127.0.0.1", unix_socket_directories: "" };

/** PostgreSQL, from the folder that has `initdb` and `postgres`. */
export function postgresProgram(bin: string, env: Readonly<Record<string, string>> = {}): Program {
  return {
    endSignal: "SIGINT",
    stopSignal: "SIGQUIT",
    initialise: async ({ directory, data, password }) => {
      const file = join(directory, "password");
      writeFileSync(file, password);
      const login = ["--username=postgres", `--pwfile=${file}`, "--auth=scram-sha-256"];
      const args = ["-D", data, "--encoding=UTF8", "--no-locale", "--no-sync", ...login];
      await run({ command: join(bin, "initdb"), args, env: { ...env, TMPDIR: directory } }, "initdb", serverAccount());
    },
    serve: ({ data }, port, settings) => ({
      command: join(bin, "postgres"),
      args: [
        ...["-D", data, "-p", `${port}`],
        ...Object.entries({ ...durable, ...small, ...local, ...settings }).flatMap(([key, value]) => [
          "-c",
          `${key}=${value}`,
        ]),
      ],
      env,
    }),
    clear: ({ data }) => {
      // It is there after SIGKILL only; its seventh line is the key and the id of a segment of shared memory.
      const file = join(data, "postmaster.pid");
      const segment = existsSync(file) && readFileSync(file, "utf8").split("\n")[6]?.trim().split(/\s+/)[1];
      if (segment) spawnSync("ipcrm", ["-m", segment], serverAccount());
    },
    url: ({ password }, port) => `postgresql://postgres:${password}@127.0.0.1:${port}/postgres`,
  };
}
