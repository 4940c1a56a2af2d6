import type { Side } from "./side.ts";

export interface Spread {
  readonly p50Ms: number;
  readonly p99Ms: number;
}

export interface Round {
  readonly pairsPerSecond: number;
  readonly claim: Spread;
  readonly settle: Spread;
  readonly pair: Spread;
}

/** So many callers, each of whom claims a new key and settles it, again and again for this long. */
export async function round(side: Side, key: () => string, callers: number, forMs: number): Promise<Round> {
  const claims: number[] = [];
  const settlements: number[] = [];
  const pairs: number[] = [];
  const start = performance.now();

  async function caller(): Promise<void> {
    while (performance.now() - start < forMs) {
      const asked = performance.now();
      const settle = await side.claim(key());
      const claimed = performance.now();
      await settle();
      const settled = performance.now();
      claims.push(claimed - asked);
      settlements.push(settled - claimed);
      pairs.push(settled - asked);
    }
  }

  await Promise.all(Array.from({ length: callers }, caller));
  return {
    pairsPerSecond: (pairs.length * 1000) / (performance.now() - start),
    claim: spread(claims),
    settle: spread(settlements),
    pair: spread(pairs),
  };
}

export function spread(values: readonly number[]): Spread {
  const sorted = values.toSorted((a, b) => a - b);
  return { p50Ms: quantile(sorted, 0.5), p99Ms: quantile(sorted, 0.99) };
}

function quantile(sorted: readonly number[], part: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN;
}

export function median(values: readonly number[]): number {
  return quantile(
    values.toSorted((a, b) => a - b),
    0.5,
  );
}

/** Of the rounds of one side at one number of callers. */
export function medians(rounds: readonly Round[]): Round {
  const of = (value: (round: Round) => number): number => median(rounds.map(value));
  const spreadOf = (half: "claim" | "settle" | "pair"): Spread => ({
    p50Ms: of((each) => each[half].p50Ms),
    p99Ms: of((each) => each[half].p99Ms),
  });
  return {
    pairsPerSecond: of((each) => each.pairsPerSecond),
    claim: spreadOf("claim"),
    settle: spreadOf("settle"),
    pair: spreadOf("pair"),
  };
}
