import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { aptInstall, aptObstacle } from "./apt.ts";
import { startGuard } from "./guard.ts";
import { launch } from "./launch.ts";
import { makeDirectory } from "./place.ts";
import { freePort } from "./port.ts";
import { probe, query } from "./probe.ts";
import { findProgram } from "./programs.ts";
import { ServerUnavailable } from "./server.ts";

export interface PgBouncer {
  /** The address that was given, through the pooler; other databases of the server are there too. */
  readonly url: string;
  readonly version: string;
  stop(): Promise<void>;
}

async function program(): Promise<string> {
  const found = findProgram("pgbouncer");
  if (found !== undefined) return found;
  const obstacle = aptObstacle();
  if (obstacle !== undefined)
    throw new ServerUnavailable(
      `No pgbouncer (it is not installed; ${obstacle}): install it from this system's packages.`,
    );
  await aptInstall("pgbouncer");
  return findProgram("pgbouncer") ?? "pgbouncer";
}

function configuration(target: URL, port: number, users: string): string {
  const quote = (value: string): string => `'${decodeURIComponent(value).replaceAll("'", "''")}'`;
  const password = target.password === "" ? "" : ` password=${quote(target.password)}`;
  return `[databases]
* = host=${target.hostname} port=${target.port || 5432} user=${quote(target.username)}${password}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
pool_mode = transaction
auth_type = ${target.password === "" ? "trust" : "scram-sha-256"}
auth_file = ${users}
admin_users = ${decodeURIComponent(target.username)}
default_pool_size = 20
max_client_conn = 500
`;
}

/** PgBouncer in transaction mode in front of a PostgreSQL, for the user that the address names. */
export async function startPgBouncer(serverUrl: string): Promise<PgBouncer> {
  const command = await program();
  const directory = makeDirectory("pgbouncer");
  const guard = startGuard(directory);
  try {
    const port = await freePort();
    const target = new URL(serverUrl);
    const quote = (value: string): string => `"${decodeURIComponent(value).replaceAll('"', '""')}"`;
    const [users, ini] = [join(directory, "users"), join(directory, "pgbouncer.ini")];
    writeFileSync(users, `${quote(target.username)} ${quote(target.password)}\n`);
    writeFileSync(ini, configuration(target, port, users));
    const through = new URL(serverUrl);
    through.hostname = "127.0.0.1";
    through.port = `${port}`;
    const { dataDirectory } = await probe(serverUrl);
    const isOurs = async (): Promise<boolean> => (await probe(through.href)).dataDirectory === dataDirectory;
    const pooler = await launch({ command: { command, args: [ini] }, directory, guard, isOurs });
    const console = new URL(through);
    console.pathname = "pgbouncer";
    const [row] = await query(console.href, "show version");
    return {
      url: through.href,
      version: String((row as { readonly version: string }).version),
      stop: async () => {
        await pooler.end("SIGTERM");
        await guard.release();
      },
    };
  } catch (error) {
    await guard.release();
    throw error;
  }
}
