import type { Goal } from "./goals.ts";
import type { LockName } from "./lock.ts";
import type { LockLevel, MeasuredLocks } from "./lock-measure.ts";
import type { Spread } from "./round.ts";

const header = ["threads", "", "turns/s", "acquire p50", "p99", "release p50", "p99", "both p50", "p99 ms", "to raw"];
const widths = [7, 18, 8, 12, 8, 12, 8, 9, 8, 7];

export function lockTable({ name, versions, loadBefore, loadAfter, levels, handOver }: MeasuredLocks): string {
  const named = Object.entries(versions).map(([what, version]) => `${what} ${version}`);
  const load = `load ${loadBefore.toFixed(1)} to ${loadAfter.toFixed(1)}`;
  const gaps = entries(handOver).map(([lock, { count, ...gap }]) =>
    line(["", lock, `${count}`, ...figures(gap), "ms from body to body"]),
  );
  return [
    `\n${name} (${named.join(", ")}; ${load})`,
    line(header),
    ...levels.flatMap(rows),
    "one thread that 16 wait for",
    ...gaps,
  ].join("\n");
}

function rows({ threads, turns, p50Ratio }: LockLevel): readonly string[] {
  return entries(turns).map(([lock, { perSecond, acquire, release, both }], index) => {
    const spreads = [acquire, release, both].flatMap(figures);
    const ratio = p50Ratio[lock]?.toFixed(2) ?? "";
    return line([index === 0 ? `${threads}` : "", lock, perSecond.toFixed(0), ...spreads, ratio]);
  });
}

function entries<Figures>(of: Readonly<Partial<Record<LockName, Figures>>>): readonly (readonly [LockName, Figures])[] {
  return Object.entries(of) as (readonly [LockName, Figures])[];
}

function figures({ p50Ms, p99Ms }: Spread): readonly string[] {
  return [p50Ms.toFixed(2), p99Ms.toFixed(2)];
}

function line(cells: readonly string[]): string {
  return cells.map((cell, index) => cell.padStart(widths[index] ?? 0)).join(" ");
}

/** Times the raw statements. */
const mostP50 = 1.2;
const mostHandOverMs: Readonly<Partial<Record<LockName, number>>> = { twiceproof: 25, "twiceproof, LISTEN": 5 };

export function lockGoalsOf({ name, levels, handOver }: MeasuredLocks): readonly Goal[] {
  const turns = levels.map(({ threads, p50Ratio }): Goal => {
    const ratio = p50Ratio.twiceproof ?? Number.NaN;
    const title = `${name}, acquire + release p50 at ${threads} ${threads === 1 ? "thread" : "threads"}`;
    return { name: title, figure: `${ratio.toFixed(2)}x`, target: `at most ${mostP50}x`, met: ratio <= mostP50 };
  });
  const gaps = entries(mostHandOverMs).flatMap(([lock, most]): readonly Goal[] => {
    const gap = handOver[lock]?.p50Ms;
    if (gap === undefined) return [];
    const how = lock === "twiceproof" ? "polling" : "LISTEN";
    const figure = `${gap.toFixed(1)} ms`;
    return [{ name: `${name}, hand-over p50 by ${how}`, figure, target: `under ${most} ms`, met: gap < most }];
  });
  return [...turns, ...gaps];
}
