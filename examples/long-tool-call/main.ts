import { killAll } from "./processes.ts";
import { killed, type Outcome, reconciled, type Seen, sentAgain, twoRuns } from "./scenes.ts";
import { openStage, type Stage } from "./stage.ts";

interface Scene {
  readonly title: string;
  readonly play: (stage: Stage, guarded: boolean) => Promise<Seen>;
  readonly unit: "charge" | "kept turn";
  /** What has to come out without Twiceproof, and with it. */
  readonly without: Expected;
  readonly with: Expected;
}

type Expected = readonly [count: number, outcome: Outcome, because: string];

const scenes: readonly Scene[] = [
  {
    title: "A slow tool call is sent again while it still runs",
    play: sentAgain,
    unit: "charge",
    without: [2, "charged again", "the second worker knows nothing of the first"],
    with: [1, "recorded result", "the second worker waits, and gets the recorded result"],
  },
  {
    title: "A worker is killed after the charge, before the record",
    play: killed,
    unit: "charge",
    without: [2, "charged again", "the next worker knows nothing of the first"],
    with: [1, "in doubt", "the effect is in doubt, and the next worker is told:"],
  },
  {
    title: "The doubt is settled: the reconcile hook asks the API",
    play: reconciled,
    unit: "charge",
    without: [2, "nobody asked", "nobody knows that there is something to ask"],
    with: [1, "recorded result", "the hook finds the charge, and a third worker gets it as the recorded result"],
  },
  {
    title: "Two runs start on one thread at the same moment",
    play: twoRuns,
    unit: "kept turn",
    without: [1, "overwrote", "both read the thread, and one overwrites the other's turn"],
    with: [2, "refused", "one is refused, is told who holds the thread, and runs when it is sent again"],
  },
];

const table = [`${" ".repeat(60)}without     with`];
const wrong: string[] = [];
let now = "before the first scene";
let stage: Stage | undefined;

console.log("Real processes, one SQLite file, and a payment API that counts what it is asked to charge.");
try {
  stage = await openStage();
  for (const [index, scene] of scenes.entries()) {
    const title = `${index + 1}. ${scene.title}`;
    console.log(`\n${title}`);
    let row = title.padEnd(60);
    for (const mode of ["without", "with"] as const) {
      now = `scene ${index + 1}, ${mode} Twiceproof`;
      row += show(mode, scene, await scene.play(stage, mode === "with")).padEnd(12);
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
function show(mode: "without" | "with", scene: Scene, { count, outcome, quote = "" }: Seen): string {
  const [rightCount, rightOutcome, because] = scene[mode];
  const counted = amount(count, scene.unit);
  const problem =
    count === rightCount && outcome === rightOutcome
      ? undefined
      : `expected ${amount(rightCount, scene.unit)} (${rightOutcome}), saw ${counted} (${outcome})`;
  if (problem !== undefined) wrong.push(`${now}: ${problem}`);
  console.log(`   ${mode.padEnd(10)}${counted.padEnd(11)}${problem ?? because}`);
  for (const sentence of quote.split(/(?<=\.) /)) if (sentence) console.log(`${" ".repeat(26)}${sentence}`);
  return counted;
}

function amount(count: number, unit: string): string {
  return `${count} ${unit}${count === 1 ? "" : "s"}`;
}
