import { existsSync, readdirSync, readFileSync, realpathSync } from "node:fs";
import { resolve } from "node:path";
import { defaultServerConditions, type Plugin } from "vite";
import { defineConfig } from "vitest/config";

/** A project whose tests ask for database servers says which in this file. */
const servers = (folder: string) => {
  const file = resolve(folder, "support/servers.ts");
  return existsSync(file) ? [file] : [];
};

const packages = readdirSync("packages").filter((name) => existsSync(`packages/${name}/test`));

const dependenciesOf = (folder: string, field: string): string[] =>
  Object.keys(JSON.parse(readFileSync(`${folder}/package.json`, "utf8"))[field] ?? {});

/** A package may keep folders with the lowest versions of its peers: its sources and tests run on those copies too. */
const floors = packages.flatMap((name) =>
  existsSync(`packages/${name}/floors`)
    ? readdirSync(`packages/${name}/floors`).map((floor) => ({
        name,
        floor,
        folder: `packages/${name}/floors/${floor}`,
      }))
    : [],
);

/** Resolves what the floor depends on as if the floor had imported it. */
function standOn(folder: string): Plugin {
  const names = dependenciesOf(folder, "dependencies");
  return {
    // Vitest caches what it resolved by the names of the plugins.
    name: `stands on ${names.map((name) => realpathSync(`${folder}/node_modules/${name}`)).join(", ")}`,
    enforce: "pre",
    async resolveId(source, _, options) {
      if (!names.some((name) => source === name || source.startsWith(`${name}/`))) return undefined;
      return await this.resolve(source, resolve(folder, "package.json"), { ...options, skipSelf: true });
    },
  };
}

/** A folder of tests that is called after a dependency runs where that dependency is. */
function missingIn(name: string, folder: string): string[] {
  const there = dependenciesOf(folder, "dependencies");
  const missing = dependenciesOf(`packages/${name}`, "devDependencies").filter((each) => !there.includes(each));
  return missing.map((each) => `test/${each}/**`);
}

export default defineConfig({
  // Workspace packages resolve to their sources: nothing has to be built first. Without "module", which Node does not know:
  // what @opentelemetry/api has under it, only bundlers can load.
  ssr: { resolve: { conditions: ["@twiceproof/source", ...defaultServerConditions.filter((it) => it !== "module")] } },
  test: {
    projects: [
      ...packages.map((name) => ({
        extends: true as const,
        test: {
          name,
          root: `packages/${name}`,
          include: ["test/**/*.test.ts"],
          globalSetup: servers(`packages/${name}/test`),
        },
      })),
      ...floors.map(({ name, floor, folder }) => ({
        extends: true as const,
        plugins: [standOn(folder)],
        test: {
          name: `${name}-floor-${floor}`,
          isolate: false,
          provide: { floor: resolve(folder) },
          root: `packages/${name}`,
          include: ["test/**/*.test.ts"],
          exclude: missingIn(name, folder),
          globalSetup: servers(`packages/${name}/test`),
        },
      })),
      {
        extends: true as const,
        test: {
          name: "tests",
          root: "tests",
          include: ["**/*.test.ts"],
          exclude: ["servers/**", "**/node_modules/**"],
          globalSetup: servers("tests"),
        },
      },
      {
        extends: true as const,
        test: {
          name: "servers",
          root: "tests/servers",
          include: ["test/**/*.test.ts"],
          globalSetup: servers("tests/servers/test"),
        },
      },
    ],
  },
});
