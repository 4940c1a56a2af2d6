import { spawnSync } from "node:child_process";
import { accessSync, constants, readdirSync } from "node:fs";
import { delimiter, join } from "node:path";

/** The places where packages put servers that are not on the PATH of everybody. */
const usual = [
  "/usr/sbin",
  "/usr/local/sbin",
  "/usr/local/bin",
  "/usr/libexec",
  "/opt/homebrew/bin",
  "/opt/homebrew/sbin",
];

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

export function findProgram(name: string, folders: readonly string[] = []): string | undefined {
  const path = (process.env.PATH ?? "").split(delimiter).filter(Boolean);
  return [...folders, ...path, ...usual].map((folder) => join(folder, name)).find(isProgram);
}

/** The folder of the operating system's newest PostgreSQL. */
export function findPostgresFolder(): string | undefined {
  const root = "/usr/lib/postgresql";
  let versions: string[] = [];
  try {
    versions = readdirSync(root).sort((a, b) => Number(b) - Number(a));
  } catch {
    // Not a Debian, or nothing installed.
  }
  const folders = [...versions.map((version) => join(root, version, "bin")), "/usr/pgsql/bin", "/usr/bin"];
  return folders.find((folder) => isProgram(join(folder, "postgres")) && isProgram(join(folder, "initdb")));
}

/** MySQL's own server: Debian gives its name to MariaDB. */
export function findMysqld(): string | undefined {
  const path = findProgram("mysqld");
  if (path === undefined) return undefined;
  const { stdout } = spawnSync(path, ["--no-defaults", "--version"], { encoding: "utf8" });
  return stdout && !/mariadb/i.test(stdout) ? path : undefined;
}
