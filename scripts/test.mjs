// The gate. Every step runs, also after a failed one; the last line counts the tests that were executed.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const temporary = mkdtempSync(join(tmpdir(), "twiceproof-test-"));
const report = join(temporary, "vitest.json");
const tests = { passed: 0, failed: 0 };
const skipped = [];
/** Why MySQL's tests were skipped. Nothing else may be. */
let mysqlSkipped;
const steps = [];
const laws = new Map();

function step(name, command) {
  console.log(`\n=== ${name}: ${command}`);
  const start = Date.now();
  const ok = spawnSync(command, { shell: true, stdio: "inherit" }).status === 0;
  steps.push({ name, ok, seconds: (Date.now() - start) / 1000 });
  return ok;
}

function countVitest() {
  const result = JSON.parse(readFileSync(report, "utf8"));
  tests.passed += result.numPassedTests;
  // A file that fails to load, or in a hook, has no failed test of its own: it counts as one.
  for (const file of result.testResults) {
    const failed = file.assertionResults.filter((test) => test.status === "failed").length;
    tests.failed += file.status === "failed" ? Math.max(failed, 1) : failed;
    for (const test of file.assertionResults) countLaw(test, /packages[\\/]([\w-]+)/.exec(file.name)?.[1]);
    for (const { fullName, status } of file.assertionResults)
      if (status !== "passed" && status !== "failed") skipped.push(fullName);
    for (const { title } of file.assertionResults) mysqlSkipped ??= /^MYSQL SKIPPED: (.*)/.exec(title)?.[1];
  }
}

/** Tests of a store's laws stand under a title that begins so; what is said around it names the store. */
function countLaw({ ancestorTitles, status }, room) {
  if (!ancestorTitles.some((title) => /^the (laws of a store|memory store keeps every law)/.test(title))) return;
  const where = ancestorTitles
    .map((title) => title.replace(/^the laws of a store,? ?|^the (memory store) keeps every law$/, "$1").trim())
    .filter(Boolean);
  const store = [room, ...where].join(", ");
  const count = laws.get(store) ?? { passed: 0, failed: 0 };
  laws.set(store, count);
  if (status === "passed" || status === "failed") count[status]++;
}

step("lint and format", "biome check --error-on-warnings");
step("types", "tsc");
step("unused code and dependencies", "knip");
step("build", "turbo run build --ui=stream --output-logs=errors-only");
step("published packages", "turbo run check:exports --ui=stream --output-logs=errors-only");
step("tests", `vitest run --reporter=default --reporter=json --outputFile.json="${report}"`);
try {
  countVitest();
} catch (error) {
  console.error(`vitest left no report: ${error.message}`);
  steps.at(-1).ok = false;
}
for (const entry of readdirSync("examples", { withFileTypes: true })) {
  if (!entry.isDirectory()) continue;
  const { scripts } = JSON.parse(readFileSync(`examples/${entry.name}/package.json`, "utf8"));
  if (!scripts?.start) continue;
  tests[step(`example ${entry.name}`, `pnpm --silent --dir examples/${entry.name} run start`) ? "passed" : "failed"]++;
}
rmSync(temporary, { recursive: true, force: true });

console.log("\n=== laws");
for (const [store, { passed, failed }] of laws)
  console.log(`${failed ? "FAILED" : "ok    "} ${passed} of ${passed + failed} laws: ${store}`);
console.log("\n=== summary");
for (const { name, ok, seconds } of steps)
  console.log(`${ok ? "ok    " : "FAILED"} ${seconds.toFixed(1).padStart(6)} s  ${name}`);
const ran = tests.passed + tests.failed > 0;
if (!ran) console.log("FAILED: no test was executed");
if (mysqlSkipped) console.log(`REAL MYSQL WAS NOT TESTED: ${mysqlSkipped}`);
for (const name of skipped) console.log(`NOT RUN: ${name}`);
process.exitCode = ran && tests.failed === 0 && steps.every((it) => it.ok) ? 0 : 1;
console.log(`${tests.passed} passed, ${tests.failed} failed`);
