import { describeOn } from "@twiceproof/test-servers/vitest";
import { expect, it, type TestContext } from "vitest";
import { levels, newest, newWorld, type Other, range, type Scene, sceneOn, shuffled, someWait } from "./support.ts";

/** A serialization failure, a deadlock; of InnoDB, a changed record, a duplicate key, and what a list does not wait for. */
const conflicts: readonly unknown[] = ["40001", "40P01", 1020, 1213, 1062, 1205, 3572];
const payload = { format: "json", text: '"done"' };

async function won(scene: Scene, kind: "effect" | "lock", key: string) {
  const asked = scene.request(kind, key);
  expect(await scene.store.claim([asked])).toEqual([{ answer: "won", token: 1 }]);
  return { id: asked.id, attemptId: asked.attemptId, token: 1 };
}

/** In a transaction of somebody else's: changes the row, and nothing that we compare but its version. */
async function touch(other: Other, { claims, is }: Scene, id: string): Promise<void> {
  await other.query(`update ${claims} set version = version + 1 where ${is("id", id)}`);
}

describeOn(newest, "transactions that meet", (server) => {
  for (const level of levels) {
    it.concurrent(`13: ${level}: a row that changes while a settlement waits for it: it is settled, once`, async (context) => {
      const scene = await sceneOn(server, context, "its own");
      const [other, { store, refusals }] = [await scene.other(), scene.connect({ level })];
      const ref = await won(scene, "effect", "order:1");
      await store.health();
      await other.query("begin");
      await touch(other, scene, ref.id);
      const settled = store.settle([{ ...ref, state: "completed", payload }]);
      await someWait(scene, other);
      await other.query("commit");
      expect(await settled).toEqual(["settled"]);
      expect(await scene.record("order:1")).toMatchObject({ state: "completed", version: 3, payload });
      // Here it was refused, and asked again.
      if (scene.isPostgres && level !== "read committed") expect(refusals).toContain("40001");
    });

    it.concurrent(`18: ${level}: a row that changes while a verdict waits for it: the verdict is refused`, async (context) => {
      const scene = await sceneOn(server, context, "its own");
      const [other, { store }] = [await scene.other(), scene.connect({ level })];
      const ref = await won(scene, "effect", "order:1");
      await scene.store.abandon(ref, "gone");
      await store.health();
      await other.query("begin");
      await touch(other, scene, ref.id);
      const by = { decisionId: "0".repeat(32), who: "ana", why: "asked", evidence: null };
      const resolved = store.resolve({ ...ref, version: 2 }, { state: "completed", payload }, by);
      await someWait(scene, other);
      await other.query("commit");
      expect(await resolved).toBe("refused");
      expect(await scene.record("order:1")).toMatchObject({ state: "in-doubt", version: 3 });
      expect((await scene.store.history(ref.id)).map(({ what }) => what)).toEqual(["abandoned"]);
    });

    it.concurrent(`1: ${level}: a deadlock between a claim under a run and somebody else: the claim is asked again, and won`, async (context) => {
      const { scene, other, refusals, claimed } = await deadlock(context, level);
      await other.query("rollback");
      expect(await claimed).toEqual([{ answer: "won", token: 1 }]);
      expect(refusals).toContain(scene.isPostgres ? "40P01" : 1213);
      expect(await scene.record("order:1")).toMatchObject({ state: "claimed", token: 1, version: 1 });
    });

    it.concurrent(`14: ${level}: a deadlock with a takeover of the thread: the claim is asked again, and refused`, async (context) => {
      const { scene, other, refusals, claimed } = await deadlock(context, level);
      const { claims, is } = scene;
      await other.query(`delete from ${claims} where ${is("id", scene.request("effect", "order:1").id)}`);
      await other.query("commit");
      expect(await claimed).toMatchObject([{ answer: "fenced", record: { token: 2 } }]);
      expect(refusals).toContain(scene.isPostgres ? "40P01" : 1213);
      expect(await scene.record("order:1")).toBeNull();
    });

    it.concurrent(`1: ${level}: of callers that race in all orders, one wins each key, and all get its result`, async (context) => {
      const scene = await sceneOn(server, context, "its own");
      const world = newWorld();
      const sources = range(3).map(() => scene.connect({ level }));
      const tps = sources.map(({ store }) => scene.tp({ store, storeTimeoutMs: 60_000 }));
      const keys = range(40).map((index) => `order:${index}`);
      const results = await Promise.all(
        tps.map(async (tp, place) => {
          const answers = new Map<string, unknown>();
          await tp.withRun({ thread: `thread:${place}` }, async (run) => {
            const calls = shuffled(keys).map(async (key) => {
              answers.set(key, await run.once(key, () => world.act(key), { scope: undefined, waitMs: 60_000 }));
            });
            await Promise.all(calls);
          });
          return keys.map((key) => answers.get(key));
        }),
      );
      expect(results[0]).toMatchObject(keys.map((key) => ({ key })));
      for (const others of results) expect(others).toEqual(results[0]);
      expect(keys.map(world.acts)).toEqual(keys.map(() => 1));
      for (const { refusals } of sources) expect(refusals.filter((code) => !conflicts.includes(code))).toEqual([]);
    });
  }

  /**
   * Somebody has inserted the key and wants the lock's row; the claim has the lock's row and wants the key. Resolves when
   * the server has ended that, at the claim's expense, and somebody has replaced the run.
   */
  async function deadlock(context: TestContext, level: (typeof levels)[number]) {
    const scene = await sceneOn(server, context, "its own");
    const { claims, is, isPostgres } = scene;
    const [other, outside] = [await scene.other(), await scene.other()];
    const { store, refusals } = scene.connect({ level });
    const lock = await won(scene, "lock", "thread:1");
    await store.health();
    // PostgreSQL ends whoever looks first, InnoDB whoever has written less.
    if (isPostgres) await other.query("set deadlock_timeout = '60s'");
    else await other.query("create table ballast (id int primary key) engine = innodb");
    await other.query("begin");
    if (!isPostgres)
      await other.query(
        `insert into ballast values ${range(50)
          .map((id) => `(${id})`)
          .join(", ")}`,
      );
    const asked = scene.request("effect", "order:1", { fence: lock });
    const bytes = (hex: string): string => (isPostgres ? `decode('${hex}', 'hex')` : `x'${hex}'`);
    const moment = isPostgres ? "'epoch'" : "0";
    await other.query(`insert into ${claims} (id, attempt_id, namespace, kind, ${isPostgres ? "key" : "`key`"}, name, fingerprint,
      holder, state, token, version, lease_ms, lease_until, created_at, claimed_at)
      values (${bytes(asked.id)}, ${bytes(lock.attemptId)}, 'n', 'effect', 'k', 'n', 'f', 'h', 'claimed', 1, 1, 1, ${moment}, ${moment}, ${moment})`);
    const claimed = store.claim([asked]);
    await someWait(scene, outside);
    // As the store does before it replaces a holder: PostgreSQL lets a mere update of other columns pass.
    await other.query(`select version from ${claims} where ${is("id", lock.id)} for update`);
    await other.query(
      `update ${claims} set attempt_id = ${bytes("0".repeat(32))}, token = 2, version = version + 1 where ${is("id", lock.id)}`,
    );
    return { scene, other, refusals, claimed };
  }
});
