import type { RunnableConfig } from "@langchain/core/runnables";
import {
  type BaseCheckpointSaver,
  emptyCheckpoint,
  MemorySaver,
  MessagesAnnotation,
  START,
  StateGraph,
} from "@langchain/langgraph";
import { PostgresSaver } from "@langchain/langgraph-checkpoint-postgres";
import { SqliteSaver } from "@langchain/langgraph-checkpoint-sqlite";
import { createTwiceproof, memoryStore } from "@twiceproof/core";
import { sqliteStore } from "@twiceproof/store-sqlite";
import Database from "better-sqlite3";
import { Pool, type PoolClient } from "pg";
import { describe, expect, it, onTestFinished } from "vitest";
import { guardCheckpointer, guardGraph } from "../src/index.ts";
import { apart, type Kept, together } from "./support/places.ts";
import { config, echo, rows, say, texts, thread, unlock } from "./support/thread.ts";
import { gate, rejection, until } from "./support/waiting.ts";

/** Some versions of LangGraph save the input in the background. */
async function saved(kept: Kept): Promise<void> {
  await until(async () => (await texts(kept)).length > 0);
}

describe.each(Object.entries(together))("%s", (_, open) => {
  it("says that its fence is exact", async () => {
    const kept = await open();
    const saver = guardCheckpointer(kept.saver, { tp: createTwiceproof({ store: kept.store }) });
    expect([await saver.fence(), await saver.fence()]).toEqual(["exact", "exact"]);
  });

  // It fails when a saver no longer writes in the way that the fence stands in.
  it.each<[string, (saver: BaseCheckpointSaver, at: RunnableConfig) => Promise<unknown>]>([
    [
      "checkpoint",
      (saver, at) => saver.put(at, emptyCheckpoint(), { source: "loop", step: 9, parents: {} }, { messages: 1 }),
    ],
    ["write", (saver, at) => saver.putWrites(at, [["messages", 1]], "task")],
    ["error", (saver, at) => saver.putWrites(at, [["__error__", 1]], "task")],
  ])("14: of a run that lost its thread it writes no %s", async (_, write) => {
    const kept = await open();
    const refused = Promise.withResolvers<{ readonly code?: string; readonly rows: number }>();
    const { graph, saver, tp } = echo(kept, async (given) => {
      await saved(kept);
      await unlock(tp);
      const before = await rows(kept);
      const at = { configurable: { ...given.configurable, checkpoint_ns: "", checkpoint_id: "1" } };
      const { code } = await rejection(write(saver, at));
      refused.resolve({ code: String(code), rows: (await rows(kept)) - before });
    });
    expect(await rejection(graph.invoke(say("one"), config))).toMatchObject({ code: "RUN_LOST" });
    expect(await refused.promise).toEqual({ code: "RUN_LOST", rows: 0 });
    expect(await texts(kept)).toEqual(["one"]);
  });

  it("9: is written by a run whose lease is over, while nobody took its thread", async () => {
    const kept = await open();
    const tp = createTwiceproof({ store: { ...kept.store, renew: async (all) => all.map(() => "busy" as const) } });
    const midst = async (given: RunnableConfig) => {
      await until(async () => (await tp.threads.get(thread))?.state === "lapsed");
      const at = { configurable: { ...given.configurable, checkpoint_ns: "", checkpoint_id: "1" } };
      await saver.putWrites(at, [["messages", 1]], "task");
    };
    const { graph, saver } = echo(kept, midst, { leaseMs: 1_000, tp });
    await graph.invoke(say("one"), config);
    expect(await texts(kept)).toEqual(["one", "first one", "second one"]);
  });

  it("keeps threads apart", async () => {
    const kept = await open();
    const { graph, saver } = echo(kept);
    await Promise.all(["a", "b", "c"].map((id) => graph.invoke(say(id), { configurable: { thread_id: id } })));
    for (const id of ["a", "b", "c"])
      expect(await texts(kept, { configurable: { thread_id: id } })).toEqual([id, `first ${id}`, `second ${id}`]);
    await saver.deleteThread("b");
    expect(await saver.fence()).toBe("exact");
    expect(await texts(kept, { configurable: { thread_id: "b" } })).toEqual([]);
    expect(await texts(kept, { configurable: { thread_id: "a" } })).toHaveLength(3);
  });
});

describe.each(Object.entries(apart))("%s", (_, open) => {
  it("says that its fence detects, also when it is found out by a write", async () => {
    const kept = await open();
    const { graph, saver } = echo(kept);
    await graph.invoke(say("one"), config);
    expect(await saver.fence()).toBe("detects");
    const again = guardCheckpointer(kept.saver, { tp: createTwiceproof({ store: kept.store }) });
    expect(await again.fence()).toBe("detects");
  });

  it("14: refuses the writes of a run that was replaced before it writes", async () => {
    const kept = await open();
    const { graph, tp } = echo(kept, async () => {
      await saved(kept);
      await unlock(tp);
    });
    expect(await rejection(graph.invoke(say("one"), config))).toMatchObject({ code: "RUN_LOST" });
    expect(await texts(kept)).toEqual(["one"]);
  });
});

it("14: a saver that writes in a way of its own is found out by its first write, and looked at before the next", async () => {
  const { saver: own, store } = (await together["SqliteSaver, on one handle"]?.()) ?? expect.fail();
  let writes = 0;
  const saver = Object.assign(own, { putWrites: async () => void ++writes });
  let before: number | undefined;
  const { graph, saver: guarded } = echo({ saver, store }, async (_, asked) => {
    if (asked === "one") return;
    before = writes;
    // By another worker: this one would hear of it before it saves.
    await unlock(createTwiceproof({ store }));
  });
  expect(await guarded.fence()).toBe("exact");
  await graph.invoke(say("one"), config);
  expect(await guarded.fence()).toBe("detects");
  expect(await rejection(graph.invoke(say("two"), config))).toMatchObject({ code: "RUN_LOST" });
  expect(writes).toBe(before);
});

it("14: a takeover does not wait for ever for a holder that stands still in its PostgresSaver's transaction", async () => {
  const { saver: other, store } = (await together.PostgresSaver?.()) ?? expect.fail();
  const pool = new Pool((other as unknown as { readonly pool: Pool }).pool.options);
  onTestFinished(() => pool.end());
  pool.on("error", () => undefined);
  const connect = pool.connect.bind(pool) as (...args: unknown[]) => Promise<PoolClient>;
  const frozen = gate();
  const thawed = gate();
  async function freezing(...args: unknown[]): Promise<PoolClient> {
    const client = await connect(...args);
    // By a callback it is the pool's own.
    if (args.length > 0) return client;
    const query = client.query.bind(client) as (...args: unknown[]) => Promise<unknown>;
    return Object.assign(client, {
      async query(text: string, ...values: unknown[]) {
        const answer = await query(text, ...values);
        if (/^\s*insert into\s+\S*checkpoints\W/i.test(text)) {
          frozen.open();
          await thawed.opened;
        }
        return answer;
      },
    });
  }
  const saver = new PostgresSaver(Object.assign(pool, { connect: freezing })) as unknown as BaseCheckpointSaver;
  const { graph, tp } = echo({ saver, store });
  const run = rejection(graph.invoke(say("one"), config));
  await frozen.opened;
  await unlock(tp);
  expect(await rows({ saver: other, store })).toBe(0);
  thawed.open();
  expect(await run).toMatchObject({ code: "RUN_LOST" });
  expect(await rows({ saver: other, store })).toBe(0);
}, 30_000);

describe("a takeover while a PostgresSaver is in the midst of a write", () => {
  /** Stands in the way of what the saver inserts, after it has begun. */
  async function scene(kept: Kept) {
    const { pool } = kept.saver as unknown as { readonly pool: Pool };
    const blocker = await pool.connect();
    const midst = gate();
    const { graph, tp } = echo(kept, async () => {
      await blocker.query("begin");
      await blocker.query("lock table checkpoint_writes, checkpoint_blobs, checkpoints in exclusive mode");
      midst.open();
    });
    const run = graph.invoke(say("one"), config).then(
      () => "stored",
      (error: { readonly code?: string }) => error.code,
    );
    await midst.opened;
    const blocked = async (text: string) => {
      const { rows } = await pool.query(
        "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and query ilike $1",
        [`%${text}%`],
      );
      return rows.length > 0;
    };
    await until(() => blocked("into%checkpoint_writes"));
    const release = async () => {
      await blocker.query("commit");
      blocker.release();
    };
    return { tp, run, blocked, release };
  }

  it("14: waits for it: what was written was written by the holder", async () => {
    const kept = (await together.PostgresSaver?.()) ?? expect.fail();
    const { tp, run, blocked, release } = await scene(kept);
    const taken = unlock(tp);
    await until(() => blocked('update "twiceproof".claims'));
    const before = await rows(kept);
    await release();
    await taken;
    expect(await rows(kept)).toBeGreaterThan(before);
    expect(await run).toBe("RUN_LOST");
  });

  it("with claims elsewhere it does not: the write lands, and the run is told of it", async () => {
    const kept = { ...((await apart["PostgresSaver, claims in SQLite"]?.()) ?? expect.fail()), store: memoryStore() };
    const { tp, run, release } = await scene(kept);
    await unlock(tp);
    const before = await rows(kept);
    await release();
    expect(await run).toBe("RUN_LOST");
    expect(await rows(kept)).toBeGreaterThan(before);
  });
});

it("14: a save that was refused in the background stops the run at once, and not only at its end", async () => {
  const store = memoryStore();
  // Its heartbeat hears of nothing.
  const tp = createTwiceproof({ store: { ...store, renew: async (all) => all.map(() => "busy" as const) } });
  let wentOn = false;
  const graph = new StateGraph(MessagesAnnotation)
    .addNode("loses", async () => {
      // By another worker: this one would hear of it before it saves.
      await unlock(createTwiceproof({ store }));
      return {};
    })
    .addNode("is stopped", async (_, { signal }) => {
      await until(() => signal?.aborted === true);
      return {};
    })
    .addNode("goes on", () => {
      wentOn = true;
      return {};
    })
    .addEdge(START, "loses")
    .addEdge("loses", "is stopped")
    .addEdge("is stopped", "goes on")
    .compile({ checkpointer: guardCheckpointer(new MemorySaver(), { tp }) });
  const run = guardGraph(graph, { tp }).invoke(say("one"), { ...config, durability: "async" });
  expect(await rejection(run)).toMatchObject({ code: "RUN_LOST" });
  expect(wentOn).toBe(false);
});

it("14: SqliteSaver: the write lock, the look at the claim and the write are one transaction", async () => {
  const said: string[] = [];
  const db = new Database(":memory:", { verbose: (text) => said.push(String(text)) });
  onTestFinished(() => void db.close());
  const saver = new SqliteSaver(db as never) as unknown as BaseCheckpointSaver;
  const { graph } = echo({ saver, store: sqliteStore(db) });
  await graph.invoke(say("one"), config);
  const writes = said.flatMap((text, at) => (/^\s*insert [\w ]*into (checkpoints|writes)\b/i.test(text) ? [at] : []));
  expect(writes.length).toBeGreaterThan(4);
  for (const at of writes) {
    const begun = said.slice(0, at).findLastIndex((text) => /^ *begin/i.test(text));
    expect(said[begun]).toMatch(/^begin immediate$/i);
    expect(said[begun + 1]).toContain("1 as held");
    expect(said.slice(begun, at)).not.toContainEqual(expect.stringMatching(/^ *(commit|rollback)/i));
  }
});
