import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Message } from "@ag-ui/core";
import { plainAgent } from "./agent.ts";
import { openDatabases } from "./databases.ts";
import { killServers, type Server, startServer } from "./processes.ts";
import { messagesOf } from "./turn.ts";

export type Servers = readonly [Server, Server];

/** Servers on one database, and a look into it past all of them. */
export interface Stage {
  readonly database: string;
  startServers(environment?: Readonly<Record<string, string>>): Promise<Servers>;
  read(thread: string): Promise<readonly Message[]>;
  close(): Promise<void>;
}

export async function openStage(): Promise<Stage> {
  const directory = mkdtempSync(join(tmpdir(), "twiceproof-ag-ui-"));
  process.once("exit", () => {
    void killServers();
    rmSync(directory, { recursive: true, force: true, maxRetries: 10 });
  });
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, () => process.exit(1));

  const postgres = await findPostgres();
  // The servers inherit both. LangGraph is compiled once, and not for each of them.
  process.env.DATABASE = postgres?.url ?? join(directory, "app.db");
  process.env.NODE_COMPILE_CACHE = join(directory, "compiled");
  const databases = openDatabases();
  await databases.migrate();
  const agent = plainAgent(databases.saver);

  return {
    database: postgres ? "PostgreSQL" : "SQLite",
    startServers: (environment = {}) => Promise.all([startServer(environment), startServer(environment)]),
    read: (thread) => messagesOf(agent, thread),
    async close() {
      await killServers();
      await databases.store.close();
      await databases.close();
      await postgres?.stop?.();
    },
  };
}

/** `POSTGRES_URL`: the address of a server, or `start` for one that is started here. Without it there is none. */
async function findPostgres(): Promise<{ readonly url: string; readonly stop?: () => Promise<void> } | undefined> {
  const url = process.env.POSTGRES_URL;
  if (!url) return undefined;
  if (url !== "start") return { url };
  const servers = await import("@twiceproof/test-servers");
  return await servers.startServer("postgres");
}
