import type { ClaimRecord } from "@twiceproof/core";
import { expect } from "vitest";
import { it, leaseMs, type Place, until } from "./support/place.ts";
import type { OnceCall, Receipt } from "./support/protocol.ts";

const durationMs = 12_000;

/** Mulberry32: the choices of a run that failed can be made again, though not the moments. */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

async function allRecords(here: Place): Promise<Map<string, ClaimRecord>> {
  const records = new Map<string, ClaimRecord>();
  for (let after: string | undefined; ; ) {
    const page = await here.tp.store.list({ namespace: "default", kind: "effect", limit: 500, after });
    for (const record of page.records) records.set(record.key, record);
    if (page.next === undefined) return records;
    after = page.next;
  }
}

it("2: workers that are killed at random leave every effect done once, in doubt, or not begun", async ({ here }) => {
  const seed = Number(process.env.TWICEPROOF_SEED ?? Math.floor(Math.random() * 2 ** 32));
  console.log(`soak: TWICEPROOF_SEED=${seed}`);
  const start = performance.now();
  const elapsedMs = (): number => performance.now() - start;
  const asked = new Set<string>();
  const answered: Receipt[] = [];
  let kills = 0;

  /** Mostly keys that others are at right now, and some of long ago. */
  function someCalls(random: () => number): readonly OnceCall[] {
    const newest = 20 + Math.floor(elapsedMs() / 10);
    return Array.from({ length: 12 }, () => {
      const key = `job:${Math.floor(random() < 0.8 ? newest - 20 * random() : newest * random())}`;
      const ending = random();
      asked.add(key);
      return {
        key,
        leaseMs,
        waitMs: 100,
        takesMs: 20,
        ...(ending < 0.15 ? { end: "notExecuted" } : ending < 0.25 ? { end: "throw" } : {}),
      };
    });
  }

  async function slot(random: () => number): Promise<void> {
    while (elapsedMs() < durationMs) {
      const worker = await here.start();
      const death = { at: elapsedMs() + 100 + 500 * random() };
      const killed = until("the moment to kill", () => elapsedMs() > death.at).then(() => worker.kill());
      for (;;) {
        const outcome = await worker.ask("onceAll", someCalls(random));
        if ("code" in outcome) break;
        for (const each of outcome.value) if ("value" in each) answered.push(each.value);
      }
      await killed;
      kills++;
    }
  }
  await Promise.all([slot(seeded(seed)), slot(seeded(seed + 1)), slot(seeded(seed + 2))]);

  let records = await allRecords(here);
  await until("the last lease", async () => {
    records = await allRecords(here);
    return ![...records.values()].some(({ state }) => state === "claimed");
  });
  const counts = { completed: 0, "in-doubt": 0, released: 0, untouched: 0 };
  const acts = Map.groupBy(here.allActs(), ({ key }) => key);
  for (const key of asked) {
    const record = records.get(key);
    const acted = acts.get(key) ?? [];
    const state = record?.state ?? "untouched";
    expect(["completed", "in-doubt", "released", "untouched"]).toContain(state);
    counts[state as keyof typeof counts]++;
    expect(acted.length, `${key} is ${state}`).toBeLessThanOrEqual(
      state === "completed" || state === "in-doubt" ? 1 : 0,
    );
    if (record?.state !== "completed") continue;
    // What is recorded is what the one act returned.
    expect(acted).toMatchObject([{ token: record.token }]);
    expect(JSON.parse(record.payload?.text ?? "null")).toMatchObject({ key, pid: acted[0]?.pid });
  }
  for (const receipt of answered)
    expect(JSON.parse(records.get(receipt.key)?.payload?.text ?? "null")).toEqual(receipt);
  // Otherwise nothing was tried.
  expect(kills).toBeGreaterThan(5);
  expect(counts.completed).toBeGreaterThan(20);
  expect(counts["in-doubt"]).toBeGreaterThan(0);
  console.log(`soak: ${kills} kills, ${JSON.stringify(counts)}, ${answered.length} answers`);
});
