import { mkdirSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import { ServerUnavailable } from "@twiceproof/test-servers";
import { goalsOf } from "./goals.ts";
import { type Measured, measure } from "./measure.ts";
import { goalLine, table } from "./report.ts";
import type { Subject, SubjectName } from "./subject.ts";
import { mysqlSubject } from "./subject-mysql.ts";
import { postgresSubject } from "./subject-postgres.ts";
import { sqliteSubject } from "./subject-sqlite.ts";

const subjects: Readonly<Record<SubjectName, () => Promise<Subject>>> = {
  sqlite: sqliteSubject,
  postgres: postgresSubject,
  mariadb: () => mysqlSubject("mariadb"),
  mysql: () => mysqlSubject("mysql"),
};

/** A goal that is missed is told and breaks nothing; only MySQL, which few distributions have, may be missing. */
export async function benchStores(names: readonly string[]): Promise<void> {
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
  write({
    at: new Date().toISOString(),
    node: process.version,
    cores: availableParallelism(),
    measured,
    missing,
    goals,
  });
}

function known(name: string): SubjectName {
  if (Object.hasOwn(subjects, name)) return name as SubjectName;
  throw new Error(`There is no store "${name}": ${Object.keys(subjects).join(", ")}.`);
}

function write(results: object): void {
  const folder = new URL("results/", import.meta.url);
  mkdirSync(folder, { recursive: true });
  const file = fileURLToPath(new URL("stores.json", folder));
  writeFileSync(file, `${JSON.stringify(results, null, 2)}\n`);
  console.log("\nAll figures are in bench/results/stores.json.");
}
