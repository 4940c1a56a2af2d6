import { globSync, readFileSync } from "node:fs";
import { basename } from "node:path";
import { fileURLToPath } from "node:url";
import { storeLaws } from "@twiceproof/core/testing";
import { expect, it } from "vitest";

const root = fileURLToPath(new URL("..", import.meta.url));
const page = readFileSync(`${root}docs/protocol.md`, "utf8");
const promises = new Map(
  [...page.matchAll(/^(\d+)\. \*\*[\s\S]*?(?=^\d+\. \*\*|^## )/gm)].map(([text, number]) => [Number(number), text]),
);

/** Test files by the numbers that their tests' names begin with. */
const proofs = new Map<number, Set<string>>();
for (const file of globSync("{packages/*/test,tests}/**/*.test.ts", { cwd: root, exclude: ["**/node_modules/**"] }))
  for (const [, number] of readFileSync(`${root}${file}`, "utf8").matchAll(/["'`](\d{1,2}): /g))
    proofs.set(Number(number), (proofs.get(Number(number)) ?? new Set()).add(file));

/** Files of laws by the numbers of their laws. */
const lawFiles = new Map<number, string[]>();
for (const file of globSync("packages/core/src/laws/*.ts", { cwd: root }).sort())
  for (const number of new Set(
    [...readFileSync(`${root}${file}`, "utf8").matchAll(/^ {4}number: (\d+),$/gm)].map(([, each]) => Number(each)),
  ))
    lawFiles.set(number, [...(lawFiles.get(number) ?? []), basename(file)]);

function lawFilesNamed(text: string): readonly string[] {
  const [list = ""] = text.match(/laws \d+ in\s(`[\w-]+\.ts`,?\s*)+/) ?? [];
  return [...list.matchAll(/`([\w-]+\.ts)`/g)].map(([, file]) => file ?? "");
}

it("the page has twenty promises", () => {
  expect([...promises.keys()]).toEqual(Array.from({ length: 20 }, (_, index) => index + 1));
});

it.each([...promises].filter(([number]) => number !== 20))(
  "promise %i is proved where the page says",
  (number, text) => {
    const named = [...text.matchAll(/`((?:packages|tests)\/[\w./-]+\.test\.ts)`/g)].map(([, file]) => file);
    for (const file of named)
      expect(proofs.get(number) ?? new Set(), `${file} has no test "${number}: …"`).toContain(file);
    const laws = storeLaws.filter((law) => law.number === number).length;
    expect(lawFilesNamed(text), `${laws} laws`).toEqual(lawFiles.get(number) ?? []);
    expect(named.length + laws, "nothing proves it").toBeGreaterThan(0);
  },
);

it("promise 20 is reserved, and says so", () => {
  expect(promises.get(20)).toContain("Reserved");
});
