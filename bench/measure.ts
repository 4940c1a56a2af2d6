import { loadavg } from "node:os";
import { median, medians, type Round, round } from "./round.ts";
import { keys, type Side } from "./side.ts";
import type { Counted, Subject } from "./subject.ts";

const levels: readonly number[] = [1, 8, 64, 256];
const rounds = 7;
const roundMs = 600;
const warmUpMs = 300;
/** Of each side, alone and with many callers, before anything is measured: a worker runs for days, and new code is slow. */
const firstWarmUpMs = 1_000;

/** Both sides at one number of callers: medians of the rounds, and of each round's own ratio, because the machine's load moves. */
export interface Level {
  readonly callers: number;
  readonly core: Round;
  readonly byHand: Round;
  readonly ratio: { readonly pairsPerSecond: Range; readonly p50: Range; readonly p99: Range };
  readonly pgbenchPairsPerSecond: number | null;
}

export interface Range {
  readonly median: number;
  readonly least: number;
  readonly most: number;
}

export interface Measured {
  readonly name: Subject["name"];
  readonly versions: Subject["versions"];
  readonly loadBefore: number;
  readonly loadAfter: number;
  readonly levels: readonly Level[];
  readonly replay: Counted;
}

export async function measure(subject: Subject): Promise<Measured> {
  const loadBefore = loadavg()[0] ?? 0;
  const measured: Level[] = [];
  for (const callers of [1, 64])
    for (const side of [subject.core, subject.byHand]) await round(side, keys(), callers, firstWarmUpMs);
  for (const callers of levels) measured.push(await measureLevel(subject, callers));
  const replay = await subject.countReplays();
  const { name, versions } = subject;
  return { name, versions, loadBefore, loadAfter: loadavg()[0] ?? 0, levels: measured, replay };
}

async function measureLevel(subject: Subject, callers: number): Promise<Level> {
  const { core, byHand, pgbench } = subject;
  const key = keys();
  for (const side of [core, byHand]) await round(side, key, callers, warmUpMs);
  const done: { readonly core: Round; readonly byHand: Round }[] = [];
  for (let number = 0; number < rounds; number++) done.push(await bothWays(core, byHand, key, callers, number));

  const ratio = (of: (round: Round) => number): Range => {
    const each = done.map((pair) => of(pair.core) / of(pair.byHand));
    return { median: median(each), least: Math.min(...each), most: Math.max(...each) };
  };
  // A server takes only so many connections, and more than it has cores help nobody.
  const rates: number[] = [];
  if (pgbench !== undefined && callers <= 64)
    for (let again = 0; again < 3; again++) rates.push(await pgbench(callers));
  return {
    callers,
    core: medians(done.map((pair) => pair.core)),
    byHand: medians(done.map((pair) => pair.byHand)),
    ratio: {
      pairsPerSecond: ratio((each) => each.pairsPerSecond),
      p50: ratio((each) => each.pair.p50Ms),
      p99: ratio((each) => each.pair.p99Ms),
    },
    pgbenchPairsPerSecond: rates.length > 0 ? median(rates) : null,
  };
}

/** Who goes first changes from round to round. */
async function bothWays(
  core: Side,
  byHand: Side,
  key: () => string,
  callers: number,
  number: number,
): Promise<{ readonly core: Round; readonly byHand: Round }> {
  const run = (side: Side): Promise<Round> => round(side, key, callers, roundMs);
  if (number % 2 === 0) {
    const first = await run(core);
    return { core: first, byHand: await run(byHand) };
  }
  const first = await run(byHand);
  return { byHand: first, core: await run(core) };
}
