import { benchRuns } from "./runs.ts";
import { benchStores } from "./stores.ts";

/** `npm run bench -- <what> [names]` */
const tasks: Readonly<Record<string, (names: readonly string[]) => Promise<void>>> = {
  stores: benchStores,
  runs: benchRuns,
};

const [what = "", ...names] = process.argv.slice(2);
const task = Object.hasOwn(tasks, what) ? tasks[what] : undefined;
if (task === undefined) {
  console.error(`Say what to measure: npm run bench -- ${Object.keys(tasks).join(" | ")} [names]`);
  process.exitCode = 2;
} else await task(names);
