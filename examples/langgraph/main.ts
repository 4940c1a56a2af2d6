import { killAll } from "./processes.ts";
import { type Seen, scenes } from "./scenes.ts";
import { openStage, type Stage } from "./stage.ts";

const expected = {
  without: { reports: 2, answer: "later report" },
  with: { reports: 1, answer: "first report" },
} as const;

const table = [`${" ".repeat(63)}without     with`];
const wrong: string[] = [];
let now = "before the first scene";
let stage: Stage | undefined;

console.log(
  `Workers in processes of their own, ${process.env.POSTGRES_URL ? "PostgreSQL" : "SQLite"}, and a service that bills.`,
);
try {
  stage = await openStage();
  for (const [index, scene] of scenes.entries()) {
    const title = `${index + 1}. ${scene.title}`;
    console.log(`\n${title}`);
    let row = title.padEnd(63);
    for (const mode of ["without", "with"] as const) {
      now = `scene ${index + 1}, ${mode} Twiceproof`;
      row += show(mode, await scene.play(stage, mode === "with")).padEnd(12);
    }
    table.push(row.trimEnd());
  }
} catch (error) {
  wrong.push(`${now}: ${(error as Error).message}`);
} finally {
  await stage?.close();
  await killAll();
}

console.log(`\n${table.join("\n")}\n`);
console.log(wrong.length === 0 ? "All as expected." : `WRONG\n${wrong.join("\n")}`);
process.exitCode = wrong.length === 0 ? 0 : 1;

/** Prints one half of a scene, and answers with its count. */
function show(mode: "without" | "with", { reports, answer, quote = "" }: Seen): string {
  const counted = `${reports} report${reports === 1 ? "" : "s"}`;
  const right = expected[mode];
  if (reports !== right.reports || answer !== right.answer)
    wrong.push(`${now}: expected ${right.reports} (${right.answer}), saw ${reports} (${answer})`);
  for (const sentence of quote.split(/(?<=\.) /)) if (sentence) console.log(`${" ".repeat(13)}${sentence}`);
  console.log(`   ${mode.padEnd(10)}${counted} on the bill; the last worker answered with the ${answer}`);
  return counted;
}
