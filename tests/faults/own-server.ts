import { setTimeout as pause } from "node:timers/promises";
import { type OwnServer, type ServerName, startServer } from "@twiceproof/test-servers";
import { describeOn } from "@twiceproof/test-servers/vitest";
import { afterAll, beforeAll, expect, it, type TestContext } from "vitest";
import { connectAlone, newWorld, type Other, range, rejection, type Scene, sceneOn, until } from "./support.ts";

const key = "order:1";
/** A role without the superuser's privileges: those may write on a read-only server, and come in when it is full. */
const user = { name: "app", password: "app" };

/** What needs a server that nobody else uses: one after the other, on one server. */
export function ownServerFaults(name: ServerName): void {
  describeOn([name], "a server of its own", () => {
    let server: OwnServer;
    let root: Other;
    const isPostgres = name.startsWith("postgres");
    beforeAll(async () => {
      server = await startServer(name, { settings: { [isPostgres ? "max_connections" : "max-connections"]: "40" } });
      root = await connectAlone(server.url);
      await root.query(
        isPostgres ? "create role app login password 'app'" : "create user app@'127.0.0.1' identified by 'app'",
      );
      await root.end();
    });
    afterAll(() => server?.stop());

    async function stage(context: TestContext): Promise<Scene> {
      const scene = await sceneOn(server, context, "its own");
      root = await scene.other();
      if (isPostgres)
        await root.query(
          "grant usage on schema twiceproof to app; grant all on all tables in schema twiceproof to app",
        );
      else await root.query(`grant all on ${new URL(scene.url).pathname.slice(1)}.* to app@'127.0.0.1'`);
      return scene;
    }

    async function setReadOnly(scene: Scene, isReadOnly: boolean): Promise<void> {
      const value = isReadOnly ? "on" : "off";
      if (!isPostgres) return void (await root.query(`set global read_only = ${value}`));
      await root.query(`alter system set default_transaction_read_only = ${value}`);
      await root.query("select pg_reload_conf()");
      const other = await connectAlone(scene.url);
      await until("the new setting, in a session that was there before", async () => {
        const [row] = await root.query("show default_transaction_read_only");
        return row?.default_transaction_read_only === value;
      });
      await other.end();
    }

    it("17: that only reads, before the effect: it does not run, and neither does a run or a lock", async (context) => {
      const scene = await stage(context);
      const world = newWorld();
      const tp = scene.tp({ user });
      await tp.once("warm", () => null);
      await setReadOnly(scene, true);
      try {
        const body = () => world.act(key);
        const calls = [tp.once(key, body), tp.withRun({ thread: "t" }, body), tp.exclusive("l", body)];
        for (const error of await Promise.all(calls.map(rejection)))
          expect(error).toMatchObject({ code: "STORE_READ_ONLY" });
        expect([...world.all]).toEqual([]);
      } finally {
        await setReadOnly(scene, false);
      }
      expect(await tp.once(key, () => world.act(key))).toMatchObject({ key });
      expect(await scene.record(key)).toMatchObject({ state: "completed", token: 1 });
    });

    it("17: that only reads after the effect, for a moment: it is recorded", async (context) => {
      const scene = await stage(context);
      const world = newWorld();
      const source = scene.connect({ user });
      const tp = scene.tp({ store: source.store });
      const call = tp.once(key, async () => {
        await setReadOnly(scene, true);
        return world.act(key);
      });
      await until("a refusal", () => source.refusals.length > 0);
      expect((await scene.record(key))?.state).toBe("claimed");
      await setReadOnly(scene, false);
      expect(await call).toMatchObject({ key });
      expect(source.refusals).toContain(isPostgres ? "25006" : 1290);
      expect(await scene.record(key)).toMatchObject({ state: "completed", token: 1, version: 2 });
      expect(world.acts(key)).toBe(1);
    });

    it("17: that only reads after the effect, for long: it is in doubt, with its value", async (context) => {
      const scene = await stage(context);
      const world = newWorld();
      const tp = scene.tp({ user, storeTimeoutMs: 300 });
      const call = tp.once(
        key,
        async () => {
          await setReadOnly(scene, true);
          return world.act(key);
        },
        { leaseMs: 1_000 },
      );
      const error = (await rejection(call)) as { readonly value: unknown };
      expect(error).toMatchObject({
        code: "EFFECT_IN_DOUBT",
        value: { key },
        cause: expect.objectContaining({ code: "STORE_UNAVAILABLE" }),
      });
      await setReadOnly(scene, false);
      const seen = await scene
        .tp()
        .once(key, () => world.act(key))
        .catch((told: unknown) => told);
      // The last question, which was given up, may have come when it could write again.
      if (seen instanceof Error) expect(seen).toMatchObject({ code: "EFFECT_IN_DOUBT" });
      else expect(seen).toEqual(error.value);
      expect(world.acts(key)).toBe(1);
    });

    it("17: that is full: the effect waits for a place, and does not run without one", async (context) => {
      const scene = await stage(context);
      const world = newWorld();
      const [source, patient] = [scene.connect({ user }), scene.connect({ user })];
      const address = new URL(scene.url);
      address.username = user.name;
      address.password = user.password;
      const guests: Other[] = [];
      const fill = async (): Promise<void> => {
        for (;;) guests.push(await connectAlone(address.href));
      };
      const full = (await rejection(fill())) as Readonly<Record<string, unknown>>;
      expect(full[isPostgres ? "code" : "errno"]).toBe(isPostgres ? "53300" : 1040);
      const tp = scene.tp({ store: source.store, storeTimeoutMs: 700 });
      expect(await rejection(tp.once(key, () => world.act(key)))).toMatchObject({
        code: "STORE_UNAVAILABLE",
        message: expect.stringMatching(/too many connections|no connection left/),
      });
      expect(source.refusals.length).toBeGreaterThan(1);
      const call = scene.tp({ store: patient.store }).once(key, () => world.act(key));
      await until("a refusal", () => patient.refusals.length > 0);
      expect(world.acts(key)).toBe(0);
      await Promise.all(guests.map((guest) => guest.end()));
      expect(await call).toMatchObject({ key });
      expect(world.acts(key)).toBe(1);
    });

    it("9: that is killed in an effect and in a run, and comes back: both go on, and complete", async (context) => {
      const scene = await stage(context);
      const world = newWorld();
      const tp = scene.tp({ storeTimeoutMs: 60_000 });
      const effect = tp.once(
        key,
        async () => {
          await until("the run", () => world.acts("order:2") === 1);
          await server.kill();
          await server.restart();
          return world.act(key);
        },
        { leaseMs: 1_000 },
      );
      const run = tp.withRun({ thread: "t", leaseMs: 60_000 }, async ({ once }) => {
        const first = await once("order:2", () => world.act("order:2"));
        await effect;
        return [first, await once("order:3", () => world.act("order:3"))];
      });
      expect(await run).toMatchObject([{ key: "order:2" }, { key: "order:3" }]);
      expect(await scene.record(key)).toMatchObject({ state: "completed", token: 1 });
      expect(await scene.record("t", "thread")).toMatchObject({ state: "released", token: 1 });
      expect([...world.all.values()]).toEqual([1, 1, 1]);
    });

    it("17: that is killed twice under load: no effect happens twice, and nothing recorded is lost", async (context) => {
      const scene = await stage(context);
      const world = newWorld();
      const tps = range(3).map(() => scene.tp({ storeTimeoutMs: 60_000 }));
      const told = new Map<string, unknown>();
      const contradictions: string[] = [];
      let isOver = false;
      let answers = 0;
      /** All go through the same keys, so that they meet. */
      async function lane(tp: (typeof tps)[number], from: number): Promise<void> {
        for (let index = from; !isOver; index += 4) {
          const mine = `order:${index}`;
          const value = await tp.once(mine, async () => {
            const receipt = world.act(mine);
            await pause(1);
            return receipt;
          });
          if (told.has(mine) && JSON.stringify(told.get(mine)) !== JSON.stringify(value)) contradictions.push(mine);
          told.set(mine, value);
          answers++;
        }
      }
      const lanes = Promise.all(tps.flatMap((tp) => range(4).map((from) => lane(tp, from))));
      for (let killed = 0; killed < 2; killed++) {
        const before = answers;
        await until("some effects", () => answers > before + 150);
        await server.kill();
        await server.restart();
      }
      const before = answers;
      await until("some more effects", () => answers > before + 150);
      isOver = true;
      await lanes;
      expect(contradictions).toEqual([]);
      expect([...world.all].filter(([, acts]) => acts !== 1)).toEqual([]);
      expect([...told.keys()].filter((each) => world.acts(each) !== 1)).toEqual([]);
      const late = scene.tp();
      const replayed = await Promise.all([...told.keys()].map((each) => late.once(each, () => world.act(each))));
      expect(replayed).toEqual([...told.values()]);
      expect([...world.all.values()].every((acts) => acts === 1)).toBe(true);
    });
  });
}
