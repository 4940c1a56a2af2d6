import { randomUUID } from "node:crypto";
import { doubtResume } from "@twiceproof/adapter-langgraph";
import { done } from "@twiceproof/core";
import { afterAll, beforeAll, describe, expect, type TestContext, test, vi } from "vitest";
import { operator } from "./support/place.ts";
import { type Graph, type Platform, type RunOptions, startPlatform } from "./support/platform.ts";

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000, maxConcurrency: 6 });

/** The rows of the table in the adapter's README: how often the tool works when a run is sent again while it works. */
interface Row {
  readonly title: string;
  /** What ends the first run, before the tool is done. */
  readonly ended?: "cancelled" | "left by its client";
  readonly again: (topic: string) => RunOptions;
  readonly second: "refused" | "waits for the first" | "runs beside the first";
  readonly acts: Readonly<Record<Graph, 1 | 2>>;
  /** The types of the thread's messages in the end. */
  readonly messages: string;
}

const rows: readonly Row[] = [
  {
    title: "again with strategy reject",
    again: (topic) => ({ topic, strategy: "reject" }),
    second: "refused",
    acts: { plain: 1, guarded: 1, keyed: 1 },
    messages: "human ai tool ai",
  },
  {
    title: "again with strategy enqueue",
    again: (topic) => ({ topic, strategy: "enqueue" }),
    second: "waits for the first",
    acts: { plain: 2, guarded: 2, keyed: 1 },
    messages: "human ai tool ai ai tool ai",
  },
  {
    title: "again with strategy interrupt",
    again: (topic) => ({ topic, strategy: "interrupt" }),
    second: "runs beside the first",
    acts: { plain: 2, guarded: 2, keyed: 1 },
    messages: "human ai ai tool ai",
  },
  {
    title: "again with strategy rollback",
    again: (topic) => ({ topic, strategy: "rollback" }),
    second: "runs beside the first",
    acts: { plain: 2, guarded: 2, keyed: 1 },
    messages: "human ai ai tool ai",
  },
  {
    title: "cancelled, and sent again",
    ended: "cancelled",
    again: (topic) => ({ topic }),
    second: "runs beside the first",
    acts: { plain: 2, guarded: 2, keyed: 1 },
    messages: "human ai ai tool ai",
  },
  {
    title: "cancelled, and resumed from its last checkpoint",
    ended: "cancelled",
    again: () => ({}),
    second: "runs beside the first",
    acts: { plain: 2, guarded: 1, keyed: 1 },
    messages: "human ai tool ai",
  },
  {
    title: "left by its client, and resumed from its last checkpoint",
    ended: "left by its client",
    again: () => ({}),
    second: "runs beside the first",
    acts: { plain: 2, guarded: 1, keyed: 1 },
    messages: "human ai tool ai",
  },
];

const cases = rows.flatMap((row) =>
  (["plain", "guarded", "keyed"] as const).map((graph) => ({ ...row, graph, looks: row.acts[graph] })),
);

describe("sent again while the tool works", () => {
  const undo: (() => unknown)[] = [];
  let platform: Platform;
  beforeAll(async () => {
    platform = await startPlatform((run) => undo.push(run));
  });
  afterAll(async () => {
    for (const run of undo.reverse()) await run();
  });

  test.concurrent.for(cases)("$title, $graph: $looks", async ({ graph, ended, again, second, looks, messages }) => {
    const topic = `topic-${randomUUID()}`;
    const thread = await platform.newThread();
    const { run: first, leave } = await platform.stream(graph, thread, { topic });
    await platform.acted(topic, 1);
    if (ended === "left by its client") leave();
    if (ended === "cancelled") await platform.cancel(thread, first);
    if (ended) expect(await platform.ended(thread, first)).toBe("interrupted");
    const { status, run } = await platform.run(graph, thread, again(topic));
    expect(status).toBe(second === "refused" ? 422 : 200);

    if (second === "runs beside the first") await (looks === 1 ? platform.met(thread) : platform.acted(topic, 2));
    platform.finish(topic);
    const last = second === "refused" ? first : run;
    expect(await platform.ended(thread, last)).toBe("success");
    const { values, next } = await platform.state(thread);
    expect(next).toEqual([]);
    expect(values.messages?.at(-1)).toMatchObject({ type: "ai", content: `${topic}, look ${looks}` });
    expect(values.messages?.map(({ type }) => type).join(" ")).toBe(messages);
    expect(platform.acts(topic)).toBe(looks);
  });
});

describe("killed while the tool works, and started again", () => {
  /** The server takes its run for running for ever: only when it is deleted, with its checkpoints, the thread is free. */
  async function killedAndSentAgain(graph: Graph, { onTestFinished }: TestContext) {
    const platform = await startPlatform((run) => onTestFinished(async () => void (await run())));
    const topic = `topic-${randomUUID()}`;
    const thread = await platform.newThread();
    const { run: first } = await platform.run(graph, thread, { topic });
    await platform.acted(topic, 1);
    await platform.saved(thread, first);
    await platform.killAndRestart();

    expect(await platform.statusOf(thread, first)).toBe("running");
    expect((await platform.run(graph, thread, { topic })).status).toBe(422);
    const { run } = await platform.run(graph, thread, { topic, strategy: "enqueue" });
    expect(await platform.statusOf(thread, run)).toBe("pending");
    expect(platform.acts(topic)).toBe(1);
    await platform.delete(thread, first);
    return { platform, topic, thread, run };
  }

  test.concurrent.for(["plain", "guarded"] as const)(
    "%s: it looks again, for a run of its own",
    async (graph, context) => {
      const { platform, topic, thread, run } = await killedAndSentAgain(graph, context);
      await platform.acted(topic, 2);
      platform.finish(topic);
      expect(await platform.ended(thread, run)).toBe("success");
      expect(platform.acts(topic)).toBe(2);
    },
  );

  test.concurrent.for(["by an operator", "by the resume of a client"] as const)(
    "2: keyed: it is in doubt, as an interrupt of the thread, until a verdict %s lets it finish",
    async (verdict, context) => {
      const { platform, topic, thread, run } = await killedAndSentAgain("keyed", context);
      expect(await platform.ended(thread, run)).toBe("success");
      expect(await platform.threadStatus(thread)).toBe("interrupted");
      const interrupts = (await platform.state(thread)).tasks.flatMap((task) => task.interrupts);
      expect(interrupts).toMatchObject([{ value: { type: "twiceproof/in-doubt", tool: "research" } }]);

      const [doubt] = (await platform.tp.doubts.list()).doubts;
      if (doubt === undefined) throw new Error("there is no doubt");
      const found = done(`${topic}, look 1`);
      const settle = async (): Promise<RunOptions> => {
        switch (verdict) {
          case "by an operator":
            expect(await platform.tp.doubts.resolve(doubt, found, operator)).toBe("applied");
            return {};
          case "by the resume of a client":
            return { resume: doubtResume(interrupts, found, operator).resume };
        }
      };
      const { run: last } = await platform.run("keyed", thread, await settle());
      expect(await platform.ended(thread, last)).toBe("success");
      const { values } = await platform.state(thread);
      expect(values.messages?.at(-1)).toMatchObject({ type: "ai", content: `${topic}, look 1` });
      expect(await platform.tp.doubts.history(doubt.id)).toMatchObject([{ what: "verdict-completed", ...operator }]);
      expect(platform.acts(topic)).toBe(1);
    },
  );
});
