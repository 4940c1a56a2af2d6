// Packs the package in the working directory as it would be published, and checks what consumers would get.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const directory = mkdtempSync(join(tmpdir(), "twiceproof-pack-"));
const run = (...command) => spawnSync(command.join(" "), { shell: true, stdio: "inherit" }).status === 0;
try {
  let ok = run("pnpm", "pack", "--pack-destination", `"${directory}"`);
  const tarball = readdirSync(directory).find((name) => name.endsWith(".tgz"));
  if (!ok || !tarball) throw new Error("pnpm pack left no tarball");
  // Both run, so that one failure does not hide the other.
  ok = run("publint", "--strict", `"${join(directory, tarball)}"`);
  ok = run("attw", "--profile", "esm-only", `"${join(directory, tarball)}"`) && ok;
  process.exitCode = ok ? 0 : 1;
} finally {
  rmSync(directory, { recursive: true, force: true });
}
