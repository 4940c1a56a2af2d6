import { randomBytes } from "node:crypto";
import { loadavg } from "node:os";
import { setTimeout as pause } from "node:timers/promises";
import type { Lock, LockName, LockSubject } from "./lock.ts";
import { median, type Spread, spread } from "./round.ts";

const levels: readonly number[] = [1, 8, 64];
const rounds = 7;
const roundMs = 500;
const warmUpMs = 1_000;
const waiters = 16;
const handOverRounds = 3;
const handOverMs = 2_000;
const bodyMs = 20;

/** Acquired and released by so many at once, each on a thread of its own. */
interface Turns {
  readonly perSecond: number;
  readonly acquire: Spread;
  readonly release: Spread;
  readonly both: Spread;
}

type ByLock<Figures> = Readonly<Partial<Record<LockName, Figures>>>;

export interface LockLevel {
  readonly threads: number;
  /** Medians of the rounds. */
  readonly turns: ByLock<Turns>;
  /** Of the medians of both, to the raw statements': the median of each round's own, because the machine's load moves. */
  readonly p50Ratio: ByLock<number>;
}

export interface MeasuredLocks extends Pick<LockSubject, "name" | "versions"> {
  readonly loadBefore: number;
  readonly loadAfter: number;
  readonly levels: readonly LockLevel[];
  /** From the end of a body to the start of the next, with sixteen workers that wait for one thread, and bodies of 20 ms. */
  readonly handOver: ByLock<Spread & { readonly count: number }>;
}

export async function measureLocks({ name, versions, locks }: LockSubject): Promise<MeasuredLocks> {
  const loadBefore = loadavg()[0] ?? 0;
  const makers = Object.entries(locks) as (readonly [LockName, () => Lock])[];
  // A listener changes nothing for those who never wait.
  const alone = makers.flatMap(([each, make]) => (each === "twiceproof, LISTEN" ? [] : [[each, make()] as const]));
  for (const threads of [1, 64]) for (const [, lock] of alone) await turns(lock, threads, warmUpMs);
  const measured: LockLevel[] = [];
  for (const threads of levels) measured.push(await measureLevel(alone, threads));
  const gaps = await interleaved(makers, handOverRounds, async (make) => await handOvers(make, handOverMs));
  const handOver = mapped(gaps, (each) => ({ ...spread(each.flat()), count: each.flat().length }));
  return { name, versions, loadBefore, loadAfter: loadavg()[0] ?? 0, levels: measured, handOver };
}

async function measureLevel(locks: readonly (readonly [LockName, Lock])[], threads: number): Promise<LockLevel> {
  const done = await interleaved(locks, rounds, (lock) => turns(lock, threads, roundMs));
  const ratio = (each: readonly Turns[]): number =>
    median(each.map((round, index) => round.both.p50Ms / (done.get("raw")?.[index]?.both.p50Ms ?? Number.NaN)));
  return { threads, turns: mapped(done, medians), p50Ratio: mapped(done, ratio) };
}

/** Who goes first changes from round to round. */
async function interleaved<Way, Figures>(
  ways: readonly (readonly [LockName, Way])[],
  times: number,
  measure: (way: Way) => Promise<Figures>,
): Promise<ReadonlyMap<LockName, readonly Figures[]>> {
  const done = new Map<LockName, Figures[]>(ways.map(([name]) => [name, []]));
  for (let number = 0; number < times; number++)
    for (const [name, way] of [...ways.slice(number % ways.length), ...ways.slice(0, number % ways.length)])
      done.get(name)?.push(await measure(way));
  return done;
}

function mapped<From, To>(all: ReadonlyMap<LockName, From>, to: (from: From) => To): ByLock<To> {
  return Object.fromEntries([...all].map(([name, each]) => [name, to(each)]));
}

async function turns(lock: Lock, threads: number, forMs: number): Promise<Turns> {
  const acquired: number[] = [];
  const released: number[] = [];
  const both: number[] = [];
  const start = performance.now();

  async function caller(_: unknown, number: number): Promise<void> {
    while (performance.now() - start < forMs) {
      const asked = performance.now();
      let begun = asked;
      await lock.run(`thread:${number}`, async () => {
        begun = performance.now();
      });
      const over = performance.now();
      acquired.push(begun - asked);
      released.push(over - begun);
      both.push(over - asked);
    }
  }

  await Promise.all(Array.from({ length: threads }, caller));
  const perSecond = (both.length * 1000) / (performance.now() - start);
  return { perSecond, acquire: spread(acquired), release: spread(released), both: spread(both) };
}

function medians(all: readonly Turns[]): Turns {
  const of = (value: (each: Turns) => number): number => median(all.map(value));
  const spreadOf = (part: "acquire" | "release" | "both"): Spread => ({
    p50Ms: of((each) => each[part].p50Ms),
    p99Ms: of((each) => each[part].p99Ms),
  });
  return {
    perSecond: of(({ perSecond }) => perSecond),
    acquire: spreadOf("acquire"),
    release: spreadOf("release"),
    both: spreadOf("both"),
  };
}

/** One holder and sixteen who wait, each a worker of its own, until the time is over. */
async function handOvers(make: () => Lock, forMs: number): Promise<readonly number[]> {
  const thread = `line:${randomBytes(6).toString("hex")}`;
  const gaps: number[] = [];
  const start = performance.now();
  let ended: number | undefined;
  let inside = 0;
  let entered = 0;

  async function body(): Promise<void> {
    if (++inside > 1) throw new Error("two had one thread");
    const begun = performance.now();
    // All are in line by then, and until the time is over.
    if (ended !== undefined && ++entered > waiters && begun - start < forMs) gaps.push(begun - ended);
    await pause(bodyMs);
    inside--;
    ended = performance.now();
  }

  async function waiter(): Promise<void> {
    const lock = make();
    while (performance.now() - start < forMs) await lock.run(thread, body);
  }

  await Promise.all(Array.from({ length: waiters + 1 }, waiter));
  return gaps;
}
