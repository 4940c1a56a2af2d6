// Imports a module, and says what that left behind: `node imports.ts <path>`.
import { readdirSync } from "node:fs";
import { createRequire } from "node:module";

const [, , path = ""] = process.argv;
const load = createRequire(path);
// What Next does before it loads a route.
load("next/dist/server/node-environment");

function look(): object {
  return {
    resources: process.getActiveResourcesInfo(),
    timers: (globalThis as { livingTimers?: () => number }).livingTimers?.(),
    files: readdirSync("/proc/self/fd").length,
  };
}

const before = look();
const module = path.endsWith(".js") ? (load(path) as object) : ((await import(path)) as object);
console.log(JSON.stringify({ before, after: look(), exports: Object.keys(module) }));
