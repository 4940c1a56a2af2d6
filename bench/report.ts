import type { Level, Measured, Range } from "./measure.ts";
import type { Round } from "./round.ts";

const header = ["callers", "", "pairs/s", "claim p50", "p99", "settle p50", "p99", "pair p50", "p99 ms"];
const widths = [8, 12, 9, 10, 8, 11, 8, 9, 8];

export function table({ name, versions, loadBefore, loadAfter, levels }: Measured): string {
  const named = Object.entries(versions).map(([what, version]) => `${what} ${version}`);
  const load = `load ${loadBefore.toFixed(1)} to ${loadAfter.toFixed(1)}`;
  return [`\n${name} (${named.join(", ")}; ${load})`, line(header), ...levels.flatMap(rows)].join("\n");
}

function rows({ callers, core, byHand, ratio, pgbenchPairsPerSecond }: Level): readonly string[] {
  return [
    line([`${callers}`, "twiceproof", ...figures(core)]),
    line(["", "by hand", ...figures(byHand)]),
    line([
      "",
      "ratio",
      range(ratio.pairsPerSecond),
      ...["", "", "", ""],
      ratio.p50.median.toFixed(2),
      ratio.p99.median.toFixed(2),
    ]),
    ...(pgbenchPairsPerSecond === null ? [] : [line(["", "pgbench", pgbenchPairsPerSecond.toFixed(0)])]),
  ];
}

function figures({ pairsPerSecond, claim, settle, pair }: Round): readonly string[] {
  const spreads = [claim, settle, pair].flatMap(({ p50Ms, p99Ms }) => [p50Ms.toFixed(2), p99Ms.toFixed(2)]);
  return [pairsPerSecond.toFixed(0), ...spreads];
}

function range({ median, least, most }: Range): string {
  return `${median.toFixed(2)} (${least.toFixed(1)}-${most.toFixed(1)})`;
}

function line(cells: readonly string[]): string {
  return cells.map((cell, index) => cell.padStart(widths[index] ?? 0)).join(" ");
}
