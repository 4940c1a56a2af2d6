import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { mysqlProgram } from "./mysql.ts";
import type { Command, Prepare } from "./program.ts";
import { findProgram } from "./programs.ts";
import { readableTree } from "./readable.ts";
import { run } from "./run.ts";
import { say } from "./say.ts";

const toolchain = fileURLToPath(new URL("../../../.toolchain/", import.meta.url));
const root = join(toolchain, `mysql-${process.arch}`);
const PACKAGE = "mysql-server-core";

/** Why the packages of MySQL cannot be fetched here, or undefined when they can. */
export function packagesObstacle(): string | undefined {
  const missing = ["apt-get", "dpkg-deb"].find((name) => findProgram(name) === undefined);
  if (missing !== undefined) return `this system has no ${missing}`;
  return /^VERSION_CODENAME=/m.test(osRelease()) ? undefined : "this system does not say which release it is";
}

function osRelease(): string {
  return existsSync("/etc/os-release") ? readFileSync("/etc/os-release", "utf8") : "";
}

/** A line of sources.list: the machine's own mirror, with Debian's unstable suite, the only one that has MySQL. */
async function source(flags: readonly string[]): Promise<string> {
  const codename = /^VERSION_CODENAME="?([\w-]+)/m.exec(osRelease())?.[1];
  const debian = /^ID="?debian"?$/m.test(osRelease());
  // Reads nothing from the network, and needs no lists: a new machine has none.
  const args = [...flags, "update", "--print-uris"];
  const uris = await run({ command: "apt-get", args }, "reading apt's sources");
  const mirror = new RegExp(`'(\\S+)/dists/${codename}/InRelease'`).exec(uris)?.[1];
  if (mirror === undefined) throw new Error(`apt's sources have no mirror for ${codename}`);
  const keyring = `/usr/share/keyrings/${debian ? "debian" : "ubuntu"}-archive-keyring.gpg`;
  return `deb [signed-by=${keyring}] ${mirror} ${debian ? "sid main" : `${codename} main universe`}\n`;
}

function options(values: Readonly<Record<string, string>>): string[] {
  return Object.entries(values).flatMap(([key, value]) => ["-o", `${key}=${value}`]);
}

/** apt with its state in a folder of its own, where nothing is installed: needs no root, changes nothing outside. */
async function download(folder: string): Promise<string[]> {
  for (const each of ["state/lists/partial", "cache/archives/partial", "parts"])
    mkdirSync(join(folder, each), { recursive: true });
  writeFileSync(join(folder, "status"), "");
  const state = options({
    "Dir::State": join(folder, "state"),
    "Dir::State::status": join(folder, "status"),
    "Dir::Cache": join(folder, "cache"),
    "Debug::NoLocking": "1",
    "APT::Sandbox::User": "root",
    "Acquire::Languages": "none",
    "Acquire::Retries": "2",
  });
  const list = join(folder, "sources.list");
  writeFileSync(list, await source(state));
  const flags = [
    ...state,
    ...options({ "Dir::Etc::sourcelist": list, "Dir::Etc::sourceparts": join(folder, "parts") }),
  ];
  await run({ command: "apt-get", args: [...flags, "-q", "update"] }, "reading the list of MySQL's packages");
  const args = [...flags, "-q", "install", "-y", "--no-install-recommends", "--download-only", PACKAGE];
  await run({ command: "apt-get", args }, "fetching MySQL's packages");
  const archives = join(folder, "cache/archives");
  // Perl is for scripts beside the server.
  return readdirSync(archives)
    .filter((name) => name.endsWith(".deb") && !/^(lib)?perl/.test(name))
    .map((name) => join(archives, name));
}

async function fetchPackages(): Promise<void> {
  const start = Date.now();
  say("installing MySQL into .toolchain, from the packages of its distribution (60 MB)");
  mkdirSync(toolchain, { recursive: true });
  const folder = mkdtempSync(join(toolchain, "mysql-new-"));
  try {
    const unpacked = join(folder, "root");
    for (const archive of await download(folder))
      await run({ command: "dpkg-deb", args: ["-x", archive, unpacked] }, "unpacking MySQL's packages");
    rmSync(join(unpacked, "usr/bin"), { recursive: true, force: true });
    // Unstable moves: packages that do not fit together are as good as none.
    const { command, args } = mysqldCommand(unpacked);
    await run({ command, args: [...args, "--version"] }, "mysqld --version");
    writeFileSync(join(unpacked, "complete"), "");
    // What is there is incomplete, or another run was faster: then this one is as good.
    if (!existsSync(join(root, "complete"))) {
      rmSync(root, { recursive: true, force: true });
      renameSync(unpacked, root);
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  say(`installed MySQL in ${((Date.now() - start) / 1000).toFixed(0)} s`);
}

/** mysqld with its own libraries, by its own loader. */
function mysqldCommand(folder: string): Command {
  const usr = join(folder, "usr");
  const triplet = readdirSync(join(usr, "lib")).find((name) => name.includes("-linux-gnu")) ?? "";
  const libraries = join(usr, "lib", triplet);
  const loader = readdirSync(libraries).find((name) => /^ld-linux.*\.so\.\d+$/.test(name));
  if (loader === undefined) throw new Error("MySQL's packages brought no loader");
  const path = [libraries, join(usr, "lib/mysql/private")].join(":");
  const places = [`--basedir=${usr}`, `--lc-messages-dir=${usr}/share/mysql`, `--plugin-dir=${usr}/lib/mysql/plugin`];
  const args = ["--library-path", path, join(usr, "sbin/mysqld"), "--no-defaults", ...places];
  return { command: join(libraries, loader), args };
}

/** MySQL from the packages of a newer distribution, fetched once for this clone. */
export async function packagedMysql(): Promise<Prepare> {
  if (!existsSync(join(root, "complete"))) await fetchPackages();
  return (directory) => mysqlProgram(mysqldCommand(readableTree(root, "usr/sbin/mysqld", join(directory, "mysql"))));
}
