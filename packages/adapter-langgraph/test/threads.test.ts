import { emptyCheckpoint, MemorySaver } from "@langchain/langgraph";
import { createTwiceproof, memoryStore } from "@twiceproof/core";
import { describe, expect, it } from "vitest";
import { type GuardGraphOptions, guardCheckpointer, guardGraph } from "../src/index.ts";
import type { Kept } from "./support/places.ts";
import { config, echo, type Midst, operator, say, texts, thread } from "./support/thread.ts";
import { gate, rejection, until } from "./support/waiting.ts";

const kept = (): Kept => ({ saver: new MemorySaver(), store: memoryStore() });

/** A run that stands in its node, and another worker's graph on the same thread. */
async function busy(options: Partial<GuardGraphOptions> = {}) {
  const at = kept();
  const inside = gate();
  const letOn = gate();
  const midst: Midst = async () => {
    inside.open();
    await letOn.opened;
  };
  const run = echo(at, midst).graph.invoke(say("one"), { ...config, runId: "first" });
  await inside.opened;
  return { at, run, letOn: letOn.open, other: echo(at, undefined, options) };
}

async function drained(stream: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of stream);
}

const held = { code: "THREAD_BUSY", holder: { runId: "first", liveness: "live" } };

describe("1: while a run holds its thread, another worker", () => {
  it.each<[string, (other: ReturnType<typeof echo>) => Promise<unknown>]>([
    ["invokes", ({ graph }) => graph.invoke(say("two"), config)],
    ["resumes", ({ graph }) => graph.invoke(null, config)],
    ["streams, and gets no stream", ({ graph }) => graph.stream(say("two"), config)],
    ["reads events", ({ graph }) => drained(graph.streamEvents(say("two"), { ...config, version: "v2" }))],
    ["sends a batch", ({ graph }) => graph.batch([say("two")], [config])],
    ["is part of a sequence", ({ graph }) => graph.pipe(() => "through").invoke(say("two"), config)],
    [
      "is part of a sequence that streams",
      async ({ graph }) => drained(await graph.pipe(() => "through").stream(say("two"), config)),
    ],
    ["has a config of its own", ({ graph }) => graph.withConfig(config).invoke(say("two"))],
    ["edits the state", ({ graph }) => graph.updateState(config, say("two"), "second")],
    [
      "edits it in steps",
      ({ graph }) => graph.bulkUpdateState(config, [{ updates: [{ values: say("two"), asNode: "second" }] }]),
    ],
    ["deletes the thread", ({ saver }) => saver.deleteThread(thread)],
    [
      "saves a checkpoint",
      ({ saver }) => saver.put(config, emptyCheckpoint(), { source: "update", step: 0, parents: {} }, {}),
    ],
    [
      "saves a write",
      ({ saver }) => saver.putWrites({ configurable: { ...config.configurable, checkpoint_id: "1" } }, [], "task"),
    ],
  ])("%s: is told THREAD_BUSY, and has changed nothing", async (_, act) => {
    const { at, run, letOn, other } = await busy();
    expect(await rejection(act(other))).toMatchObject(held);
    letOn();
    await run;
    expect(await texts(at)).toEqual(["one", "first one", "second one"]);
  });

  it.each(["wait", "interrupt"] as const)(
    "edits the state of a graph whose runs %s: is refused all the same",
    async (onBusy) => {
      const { run, letOn, other } = await busy({ onBusy });
      expect(await rejection(other.graph.updateState(config, say("two"), "second"))).toMatchObject(held);
      letOn();
      await run;
    },
  );

  it("reads it", async () => {
    const { run, letOn, other } = await busy();
    expect((await other.graph.getState(config)).next).toEqual(["first"]);
    letOn();
    await run;
  });

  it("works on other threads", async () => {
    const { run, letOn, other } = await busy();
    await other.graph.invoke(say("two"), { configurable: { thread_id: "another" } });
    letOn();
    await run;
  });

  it("sends the same run again: is told that it is in progress", async () => {
    const { run, letOn, other } = await busy({ onBusy: "wait" });
    for (const again of [
      { ...config, runId: "first" },
      { configurable: { ...config.configurable, run_id: "first" } },
      { ...config, metadata: { run_id: "first" } },
    ])
      expect(await rejection(other.graph.invoke(say("one"), again))).toMatchObject({ code: "RUN_IN_PROGRESS" });
    letOn();
    await run;
  });

  it("waits in line, and both turns are stored, one after the other", async () => {
    const places: number[] = [];
    const { at, run, letOn, other } = await busy({ onBusy: "wait", onWait: ({ ahead }) => places.push(ahead) });
    const second = other.graph.invoke(say("two"), config);
    await until(() => places.length > 0);
    letOn();
    await Promise.all([run, second]);
    expect(await texts(at)).toEqual(["one", "first one", "second one", "two", "first two", "second two"]);
  });

  it("interrupts: the run is told that it was cancelled, and then the thread is free", async () => {
    const { at, run, letOn, other } = await busy({ onBusy: "interrupt" });
    const second = other.graph.invoke(say("two"), config);
    expect(await rejection(run)).toMatchObject({ code: "RUN_CANCELLED" });
    await second;
    letOn();
    expect(await texts(at)).toEqual(["one", "two", "first two", "second two"]);
  });

  it("waits, and leaves the line when its caller goes away", async () => {
    const { run, letOn, other } = await busy({ onBusy: "wait" });
    const client = new AbortController();
    const second = rejection(other.graph.invoke(say("two"), { ...config, signal: client.signal }));
    await until(async () => (await other.tp.threads.get(thread))?.queueDepth === 1);
    client.abort();
    await second;
    await until(async () => (await other.tp.threads.get(thread))?.queueDepth === 0);
    letOn();
    await run;
  });
});

describe("the thread is free again", () => {
  const free = async ({ graph }: ReturnType<typeof echo>) =>
    expect((await graph.invoke(say("next"), config)).messages.at(-1)?.text).toBe("second next");

  it("after a run that failed", async () => {
    const at = kept();
    const { graph } = echo(at, () => Promise.reject(new Error("broken")));
    expect(await rejection(graph.invoke(say("one"), config))).toMatchObject({ message: "broken" });
    await free(echo(at));
  });

  it("after a stream that was read to its end, and one whose reader left in its midst", async () => {
    const at = kept();
    const { graph } = echo(at);
    for await (const _ of await graph.stream(say("one"), config));
    for await (const _ of await graph.stream(say("two"), config)) break;
    await free(echo(at));
  });

  it("after a stream that nobody read", async () => {
    const at = kept();
    const made = echo(at);
    await made.graph.stream(say("one"), config);
    await until(async () => (await made.tp.threads.get(thread)) === null);
    expect(await texts(at)).toEqual(["one", "first one", "second one"]);
  });

  it("after events of version 3, and not before they are over", async () => {
    const at = kept();
    const letOn = gate();
    const made = echo(at, () => letOn.opened, { inDoubt: "stop" });
    const events = await (made.graph as unknown as V3).streamEvents(say("one"), { ...config, version: "v3" });
    expect(await rejection(echo(at).graph.invoke(say("two"), config))).toMatchObject({ code: "THREAD_BUSY" });
    letOn.open();
    await events.output;
    await until(async () => (await made.tp.threads.get(thread)) === null);
    await free(echo(at));
  });

  it("at once when the caller calls its run off, whose node goes on and saves nothing more", async () => {
    const at = kept();
    const inside = gate();
    const letOn = gate();
    const through = gate();
    const { graph } = echo(at, async () => {
      inside.open();
      await letOn.opened;
      through.open();
    });
    const client = new AbortController();
    const run = rejection(graph.invoke(say("one"), { ...config, signal: client.signal }));
    await inside.opened;
    client.abort();
    await run;
    await free(echo(at));
    const before = await texts(at);
    letOn.open();
    await through.opened;
    await new Promise(setImmediate);
    expect(await texts(at)).toEqual(before);
  });

  it("after a run that an operator cancelled", async () => {
    const { at, run, letOn, other } = await busy();
    await other.tp.threads.cancel(thread, { runId: "first", ...operator });
    expect(await rejection(run)).toMatchObject({ code: "RUN_CANCELLED" });
    letOn();
    await free(echo(at));
  });
});

interface V3 {
  streamEvents(input: unknown, config: object): Promise<{ readonly output: Promise<unknown> }>;
}

describe("within its run", () => {
  it("a node reads and edits the thread by the same graph, and calls it", async () => {
    const at = kept();
    const seen: unknown[] = [];
    let calls = 0;
    const made = echo(at, async () => {
      if (calls++ > 0) return;
      seen.push((await made.graph.getState(config)).next);
      await made.graph.updateState(config, say("edited"), "second");
      seen.push("edited");
    });
    await made.graph.invoke(say("one"), config);
    expect(seen).toEqual([["first"], "edited"]);
  });

  it("a node that runs another guarded graph on another thread holds that one too", async () => {
    const at = kept();
    const inner = echo(at, async () => {
      expect(await inner.tp.threads.get("inner")).toMatchObject({ state: "claimed" });
      expect(await inner.tp.threads.get(thread)).toMatchObject({ state: "claimed" });
    });
    const outer = echo(at, () => inner.graph.invoke(say("in"), { configurable: { thread_id: "inner" } }));
    await outer.graph.invoke(say("out"), config);
    expect(await inner.tp.threads.get("inner")).toBeNull();
    expect(await texts(at)).toEqual(["out", "first out", "second out"]);
  });

  it("nothing of it stands in the state, nor in the checkpoints' metadata", async () => {
    const at = kept();
    const { graph } = echo(at);
    await graph.invoke(say("one"), config);
    const { config: read, metadata } = await graph.getState(config);
    expect(JSON.stringify([read, metadata])).not.toContain("twiceproof");
  });
});

describe("a slip", () => {
  const tp = createTwiceproof({ store: memoryStore() });
  const { graph } = echo(kept(), undefined, { tp });

  it("of an option's name is told", () => {
    expect(() => guardGraph(graph, { tp, onbusy: "wait" } as never)).toThrow(/onbusy/);
  });

  it("of an option's value is told at the call", async () => {
    const wrong = guardGraph(graph, { tp, onBusy: "queue" } as never);
    expect(await rejection(wrong.invoke(say("one"), config))).toMatchObject({ code: "INVALID_ARGUMENT" });
  });

  it.each([
    ["stores", createTwiceproof({ store: memoryStore() })],
    ["namespaces of one store", createTwiceproof({ store: tp.store, namespace: "other" })],
  ])("two different %s are told", (_, theirs) => {
    const checkpointer = guardCheckpointer(new MemorySaver(), { tp: theirs });
    const other = Object.create(graph, { checkpointer: { value: checkpointer } });
    expect(() => guardGraph(other, { tp })).toThrow(/two different `tp`/);
  });
});
