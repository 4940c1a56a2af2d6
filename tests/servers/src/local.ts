import { randomBytes } from "node:crypto";
import { realpathSync } from "node:fs";
import { join } from "node:path";
import { startGuard } from "./guard.ts";
import { type Launched, launch } from "./launch.ts";
import { makeDirectory } from "./place.ts";
import { freePort } from "./port.ts";
import { probe } from "./probe.ts";
import type { Place, Prepare } from "./program.ts";
import type { OwnServer, ServerName, StartOptions } from "./server.ts";

/** Starts a server of these binaries on a new data directory and a free port. */
export async function startLocal(name: ServerName, prepare: Prepare, options: StartOptions): Promise<OwnServer> {
  const directory = makeDirectory(name);
  const guard = startGuard(directory);
  const place: Place = { directory, data: join(directory, "data"), password: randomBytes(16).toString("hex") };
  try {
    const program = prepare(directory);
    const start = (port: number): Promise<Launched> => {
      const command = program.serve(place, port, options.settings ?? {});
      const isOurs = async (): Promise<boolean> =>
        realpathSync((await probe(program.url(place, port))).dataDirectory) === place.data;
      return launch({ command, directory, guard, isOurs });
    };
    await program.initialise(place);
    let port = await freePort();
    let running: Launched | undefined;
    // Somebody else may take the port between our look and the server's.
    for (let tries = 1; running === undefined; tries++) {
      try {
        running = await start(port);
      } catch (error) {
        if (tries === 3 || !/address already in use/i.test(String(error))) throw error;
        port = await freePort();
      }
    }
    let server = running;
    const url = program.url(place, port);
    const { version } = await probe(url);
    return {
      name,
      version,
      url,
      get pid() {
        return server.pid;
      },
      kill: () => server.kill(),
      restart: async () => {
        await server.end(program.endSignal);
        server = await start(port);
      },
      stop: async () => {
        await server.end(program.stopSignal);
        program.clear?.(place);
        await guard.release();
      },
    };
  } catch (error) {
    await guard.release();
    throw error;
  }
}
