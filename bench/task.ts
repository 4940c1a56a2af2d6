import { mkdirSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import { ServerUnavailable } from "@twiceproof/test-servers";
import type { Goal } from "./goals.ts";
import type { SubjectName } from "./subject.ts";

interface Closable {
  close(): Promise<void>;
}

export interface Task<Subject extends Closable, Measured> {
  /** Of the file in `results/`. */
  readonly name: string;
  readonly subjects: Readonly<Record<SubjectName, () => Promise<Subject>>>;
  readonly measure: (subject: Subject) => Promise<Measured>;
  readonly table: (measured: Measured) => string;
  readonly goalsOf: (measured: Measured) => readonly Goal[];
}

/** One store after the other. A goal that is missed is told and breaks nothing; only MySQL, which few distributions have, may be missing. */
export async function bench<Subject extends Closable, Measured>(
  { name: task, subjects, measure, table, goalsOf }: Task<Subject, Measured>,
  names: readonly string[],
): Promise<void> {
  const chosen = names.length > 0 ? names.map(known) : (Object.keys(subjects) as SubjectName[]);
  const measured: Measured[] = [];
  const missing: string[] = [];
  for (const name of chosen) {
    let subject: Subject;
    try {
      subject = await subjects[name]();
    } catch (error) {
      if (name !== "mysql" || !(error instanceof ServerUnavailable)) throw error;
      missing.push(`${name} was not measured: ${error.message}`);
      continue;
    }
    try {
      const figures = await measure(subject);
      measured.push(figures);
      console.log(table(figures));
    } finally {
      await subject.close();
    }
  }
  const goals = measured.flatMap(goalsOf);
  console.log(`\n${[...missing, ...goals.map(goalLine)].join("\n")}`);
  const machine = { at: new Date().toISOString(), node: process.version, cores: availableParallelism() };
  write(task, { ...machine, measured, missing, goals });

  function known(name: string): SubjectName {
    if (Object.hasOwn(subjects, name)) return name as SubjectName;
    throw new Error(`There is no store "${name}": ${Object.keys(subjects).join(", ")}.`);
  }
}

function goalLine({ name, figure, target, met }: Goal): string {
  return `goal ${name}: ${figure} (goal ${target}) ${met ? "met" : "missed"}`;
}

function write(task: string, results: object): void {
  const folder = new URL("results/", import.meta.url);
  mkdirSync(folder, { recursive: true });
  writeFileSync(fileURLToPath(new URL(`${task}.json`, folder)), `${JSON.stringify(results, null, 2)}\n`);
  console.log(`\nAll figures are in bench/results/${task}.json.`);
}
