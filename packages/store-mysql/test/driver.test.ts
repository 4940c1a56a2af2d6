import { describeOn } from "@twiceproof/test-servers/vitest";
import { expect, it } from "vitest";
import { mysqlStore } from "../src/index.ts";
import { effect, poolOn, scratchUrl, storeOn, win } from "./support/scratch.ts";

describeOn(["mariadb", "mysql"], "a pool of the application's", (server) => {
  it.each(["replaced", "wrapped"])("is asked by its own methods where they were %s", async (how) => {
    const pool = poolOn(await scratchUrl(server.url));
    const execute = pool.execute.bind(pool);
    let counted = 0;
    const counting = (...asked: Parameters<typeof execute>) => {
      counted++;
      return execute(...asked);
    };
    if (how === "replaced") Object.assign(pool, { execute: counting });
    const client = how === "replaced" ? pool : { query: pool.query.bind(pool), execute: counting, pool: pool.pool };
    const store = mysqlStore(client);
    await store.migrate();
    await win(store, effect("order:1"));
    expect(counted).toBe(1);
  });

  it.each([false, true])(
    "has no hook of it called for what the store reads, with `disableEval` %s",
    async (disableEval) => {
      const typeCast = () => "not what the row says";
      const store = await storeOn(await scratchUrl(server.url), { disableEval, typeCast });
      const ref = await win(store, effect("order:1", { scope: "shop" }));
      await store.abandon(ref, "stopped");
      expect(await store.get([ref.id])).toMatchObject([{ ...ref, scope: "shop", abandoned: true, state: "in-doubt" }]);
      expect(await store.history(ref.id)).toMatchObject([{ what: "abandoned", why: "stopped" }]);
    },
  );
});
