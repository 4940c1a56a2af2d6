import { existsSync, readdirSync } from "node:fs";
import { resolve } from "node:path";
import { defaultServerConditions } from "vite";
import { defineConfig } from "vitest/config";

/** A project whose tests ask for database servers says which in this file. */
const servers = (folder: string) => {
  const file = resolve(folder, "support/servers.ts");
  return existsSync(file) ? [file] : [];
};

const packages = readdirSync("packages").filter((name) => existsSync(`packages/${name}/test`));

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
