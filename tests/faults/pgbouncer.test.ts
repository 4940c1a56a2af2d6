import { startPgBouncer } from "@twiceproof/test-servers";
import { sharedServer } from "@twiceproof/test-servers/vitest";
import { afterAll, beforeAll, expect, it } from "vitest";
import { newWorld, range, sceneOn, shuffled, until } from "./support.ts";

// The laws of a store behind PgBouncer are among store-postgres's own tests.
type Bouncer = Awaited<ReturnType<typeof startPgBouncer>>;
let bouncer: Bouncer;
beforeAll(async () => {
  bouncer = await startPgBouncer(sharedServer("postgres").url);
});
afterAll(() => bouncer?.stop());

/** The scene's database, through the pooler. */
function pooled(url: string): string {
  const through = new URL(bouncer.url);
  through.pathname = new URL(url).pathname;
  return through.href;
}

it("1: behind PgBouncer in transaction mode, of callers that race for two hundred keys one wins each", async (context) => {
  const scene = await sceneOn(sharedServer("postgres"), context, "its own");
  const world = newWorld();
  const url = pooled(scene.url);
  // More connections than the pooler has to the server: each statement may meet another one.
  const tps = range(4).map(() => scene.tp({ url, connections: 10 }));
  const keys = range(200).map((index) => `order:${index}`);
  const results = await Promise.all(
    tps.map(async (tp) => {
      const answers = new Map<string, unknown>();
      await Promise.all(shuffled(keys).map(async (key) => answers.set(key, await tp.once(key, () => world.act(key)))));
      return keys.map((key) => answers.get(key));
    }),
  );
  expect(results[0]).toMatchObject(keys.map((key) => ({ key })));
  for (const others of results) expect(others).toEqual(results[0]);
  expect(keys.map(world.acts)).toEqual(keys.map(() => 1));
});

it("14: behind PgBouncer, a run keeps its thread by its heartbeat, and another is refused", async (context) => {
  const scene = await sceneOn(sharedServer("postgres"), context, "its own");
  const world = newWorld();
  const [tp, rival] = [scene.tp({ url: pooled(scene.url) }), scene.tp({ url: pooled(scene.url) })];
  const run = tp.withRun({ thread: "t", leaseMs: 1_500 }, async ({ once }) => {
    for (let index = 0; ((await scene.record("t", "thread"))?.version ?? 0) < 4; index++)
      await once(`order:${index}`, () => world.act(`order:${index}`));
    return "stored";
  });
  await until("the run", async () => (await scene.record("t", "thread")) !== null);
  await expect(rival.withRun({ thread: "t" }, () => "stolen")).rejects.toMatchObject({ code: "THREAD_BUSY" });
  expect(await run).toBe("stored");
  expect([...world.all.values()].every((acts) => acts === 1)).toBe(true);
});

it("13: behind PgBouncer, a server connection that is killed in a statement costs nothing", async (context) => {
  const scene = await sceneOn(sharedServer("postgres"), context, "its own");
  const world = newWorld();
  const outside = await scene.other();
  const tp = scene.tp({ url: pooled(scene.url), connections: 4 });
  const keys = range(80).map((index) => `order:${index}`);
  let killed = 0;
  let isOver = false;
  /** One after every fourth effect: without pause, no statement would ever come to its end. */
  async function kill(): Promise<void> {
    for (let next = 4; !isOver; next = world.all.size + 4) {
      await until("more effects", () => isOver || world.all.size >= next);
      const rows = await outside.query(`select pg_terminate_backend(pid) from pg_stat_activity
        where datname = current_database() and pid <> pg_backend_pid() and query like '%claims%' limit 1`);
      killed += rows.length;
    }
  }
  async function work(): Promise<unknown[]> {
    const results: unknown[] = [];
    for (const key of keys) results.push(await tp.once(key, () => world.act(key)));
    return results;
  }
  const [results] = await Promise.all([work().finally(() => (isOver = true)), kill()]);
  expect(results).toMatchObject(keys.map((key) => ({ key })));
  expect(keys.map(world.acts)).toEqual(keys.map(() => 1));
  expect(killed).toBeGreaterThan(3);
});
