import { Command, MemorySaver } from "@langchain/langgraph";
import { createTwiceproof, done, memoryStore } from "@twiceproof/core";
import { describe, expect, it } from "vitest";
import { guardGraph } from "../src/index.ts";
import { config, entrySuite, human, scene } from "./support/entries.ts";
import { ways } from "./support/graphs.ts";
import { rejection } from "./support/waiting.ts";

entrySuite("createReactAgent with guardTool", ways["createReactAgent with guardTool"]);

describe("a guarded graph", () => {
  it("has each step saved before the next, unless its caller said otherwise", async () => {
    const { saver, ...rest } = scene({ charge: () => "charged" });
    const saved = new Set<unknown>();
    const noting = new Proxy(saver, {
      get(target, name) {
        const value: unknown = Reflect.get(target, name);
        if (name !== "put") return typeof value === "function" ? value.bind(target) : value;
        return async (...args: Parameters<typeof target.put>) => {
          saved.add((args[0] as { durability?: unknown }).durability);
          return await target.put(...args);
        };
      },
    });
    const build = ways["createReactAgent with guardTool"] ?? expect.fail();
    await build({ ...rest, saver: noting }).invoke(human, config);
    expect([...saved]).toEqual(["sync"]);
    await build({ ...rest, saver: noting }).invoke(human, { ...config, durability: "async" });
    expect([...saved]).toEqual(["sync", "async"]);
  });

  it("shows interrupts in events of version 3 with `stop`", async () => {
    const build = ways["createReactAgent with guardTool"] ?? expect.fail();
    const graph = build(scene({ inDoubt: "stop" })) as unknown as {
      streamEvents(input: unknown, config: object): Promise<AsyncIterable<unknown>>;
    };
    let text = "";
    for await (const event of await graph.streamEvents(human, { ...config, version: "v3" }))
      text += JSON.stringify(event);
    expect(text).toContain("twiceproof/in-doubt");
  });

  it("gives what is not a way into a run as it is", async () => {
    const build = ways["createReactAgent with guardTool"] ?? expect.fail();
    const made = scene();
    const graph = build(made);
    const error = await rejection(graph.invoke(human, config));
    expect((await graph.getState(config)).next).toEqual(["tools"]);
    const doubt = (await made.tp.doubts.get(error.id ?? "")) ?? expect.fail();
    await made.tp.doubts.resolve(doubt, done("by hand"), { who: "ana", why: "asked" });
    const through = (graph as unknown as { pipe(next: unknown): typeof graph }).pipe((state: unknown) => state);
    const { messages } = await through.invoke(null, config);
    expect(messages.at(-1)?.content).toBe("done");
  });

  it("a resume keeps the run's id, and so does the input that is sent again after it", async () => {
    const build = ways["createReactAgent with guardTool"] ?? expect.fail();
    const made = scene({ inDoubt: "stop" });
    await build(made).invoke(human, { configurable: { thread_id: "thread", run_id: "run" } });
    await build(made).invoke(new Command({ resume: "no verdict" }), config);
    for await (const { metadata } of made.saver.list(config)) expect(metadata).toMatchObject({ run_id: "run" });
  });
});

it("a graph without a guarded checkpointer is refused, and told the line to add", () => {
  const tp = createTwiceproof({ store: memoryStore() });
  const build = ways["createReactAgent with guardTool"] ?? expect.fail();
  const plain = { checkpointer: undefined, lg_is_pregel: true, getState: () => undefined };
  for (const graph of [plain, { ...plain, checkpointer: new MemorySaver() }, { graph: plain }])
    expect(() => guardGraph(graph, { tp })).toThrow(/checkpointer: guardCheckpointer\(saver, \{ tp \}\)/);
  expect(build(scene())).toBeDefined();
});
