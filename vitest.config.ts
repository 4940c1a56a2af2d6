import { existsSync, readdirSync } from "node:fs";
import { defaultServerConditions } from "vite";
import { defineConfig } from "vitest/config";

const packages = readdirSync("packages").filter((name) => existsSync(`packages/${name}/test`));

export default defineConfig({
  // Workspace packages resolve to their sources: nothing has to be built first.
  ssr: { resolve: { conditions: ["@twiceproof/source", ...defaultServerConditions] } },
  test: {
    projects: [
      ...packages.map((name) => ({
        extends: true as const,
        test: { name, root: `packages/${name}`, include: ["test/**/*.test.ts"] },
      })),
      { extends: true as const, test: { name: "tests", root: "tests", include: ["**/*.test.ts"] } },
    ],
  },
});
