// For test files: this one imports vitest, which lives only inside of it.
import { describe, inject, test } from "vitest";
import type { Server, ServerName } from "./server.ts";
import type { ProvidedServer } from "./shared.ts";

export type SharedServer = Pick<Server, "name" | "version" | "url">;

function provided(name: ServerName): ProvidedServer {
  const server = inject("twiceproofServers")?.[name];
  if (server === undefined) throw new Error(`${name} is not among the sharedServers of this vitest project`);
  return server;
}

function need(server: ProvidedServer): SharedServer {
  if ("unavailable" in server) throw new Error(server.unavailable);
  if ("failed" in server) throw new Error(server.failed);
  return server;
}

/** The shared server of this name; throws the sentence that says how to get it when there is none. */
export function sharedServer(name: ServerName): SharedServer {
  return need(provided(name));
}

/**
 * One `describe` for each of these shared servers. A server that is missing is a failed test, and no other is; only
 * MySQL, which few distributions have, is a skipped one, and the gate's summary says so.
 */
export function describeOn(names: readonly ServerName[], title: string, tests: (server: SharedServer) => void): void {
  for (const name of names) {
    const server = provided(name);
    describe(`${title} on ${name}`, () => {
      if ("url" in server) tests(server);
      // scripts/test.mjs looks for these words.
      else if (name === "mysql" && "unavailable" in server) test.skip(`MYSQL SKIPPED: ${server.unavailable}`);
      else test("the server runs", () => void need(server));
    });
  }
}
