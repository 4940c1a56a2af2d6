import type { TestProject } from "vitest/node";
import { givenServer } from "./given.ts";
import { type Server, type ServerName, ServerUnavailable } from "./server.ts";
import { startServer } from "./start.ts";

/** What a test is told of a shared server: or the sentence that says how to get it, or how its start failed. */
export type ProvidedServer =
  | Pick<Server, "name" | "version" | "url">
  | { readonly unavailable: string }
  | { readonly failed: string };

declare module "vitest" {
  interface ProvidedContext {
    twiceproofServers: Readonly<Partial<Record<ServerName, ProvidedServer>>>;
  }
}

interface Shared {
  readonly server: Promise<Server>;
  users: number;
}

// Vitest loads this file once for each project; they all share one server of a name.
const key = Symbol.for("@twiceproof/test-servers");
const registry = globalThis as { [key]?: Map<ServerName, Shared> };
registry[key] ??= new Map();
const shared = registry[key];

function use(name: ServerName): Promise<Server> {
  const known = shared.get(name) ?? { server: givenServer(name).then((given) => given ?? startServer(name)), users: 0 };
  shared.set(name, known);
  known.users++;
  return known.server;
}

async function leave(name: ServerName): Promise<void> {
  const known = shared.get(name);
  if (known === undefined || --known.users > 0) return;
  shared.delete(name);
  await known.server.then(
    (server) => server.stop(),
    () => undefined, // It never ran: its tests have said so.
  );
}

/**
 * A global setup of vitest: finds (POSTGRES_URL, MYSQL_URL, MARIADB_URL) or starts these servers, once for all projects
 * of a run. One that cannot be had fails the tests that ask for it, not the others.
 */
export function sharedServers(names: readonly ServerName[]): (project: TestProject) => Promise<() => Promise<void>> {
  return async (project) => {
    const entries = await Promise.all(
      names.map(async (name): Promise<[ServerName, ProvidedServer]> => {
        try {
          const { version, url } = await use(name);
          return [name, { name, version, url }];
        } catch (error) {
          const { message } = error as Error;
          return [name, error instanceof ServerUnavailable ? { unavailable: message } : { failed: message }];
        }
      }),
    );
    project.provide("twiceproofServers", Object.fromEntries(entries));
    return async () => {
      await Promise.all(names.map(leave));
    };
  };
}
