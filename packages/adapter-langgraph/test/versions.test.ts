import type { RunnableConfig } from "@langchain/core/runnables";
import { MemorySaver, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { createTwiceproof, memoryStore } from "@twiceproof/core";
import { describe, expect, it } from "vitest";
import { guardCheckpointer } from "../src/index.ts";
import { type Kept, together } from "./support/places.ts";
import { config, echo, say, texts } from "./support/thread.ts";

describe("two histories of one thread", () => {
  /** The second answer is made from the checkpoint before the first one. */
  async function forked(graph: Pick<ReturnType<typeof echo>["graph"], "invoke" | "getState">): Promise<void> {
    await graph.invoke(say("HELLO"), config);
    const { config: before } = await graph.getState(config);
    await graph.invoke(say("APPLE"), config);
    await graph.invoke(say("BANANA"), { configurable: { ...before.configurable } } as RunnableConfig);
  }

  const postgres = async (): Promise<Kept> => (await together.PostgresSaver?.()) ?? expect.fail();

  it("are mixed by the PostgresSaver alone", async () => {
    const kept = await postgres();
    const graph = new StateGraph(MessagesAnnotation)
      .addNode("only", ({ messages }) => ({ messages: [`to ${messages.at(-1)?.text}`] }))
      .addEdge(START, "only")
      .compile({ checkpointer: kept.saver });
    await forked(graph as never);
    expect(await texts(kept)).toContain("APPLE");
  });

  it.each(Object.entries(together))("are kept apart with the guard: %s", async (_, open) => {
    const kept = await open();
    await forked(echo(kept).graph);
    expect(await texts(kept)).toEqual([
      ...["HELLO", "first HELLO", "second HELLO"],
      ...["BANANA", "first BANANA", "second BANANA"],
    ]);
  });

  it("that began without the guard go on", async () => {
    const kept = await postgres();
    const plain = new StateGraph(MessagesAnnotation)
      .addNode("first", () => ({ messages: ["plain"] }))
      .addEdge(START, "first")
      .compile({ checkpointer: kept.saver });
    await plain.invoke(say("HELLO"), config);
    await echo(kept).graph.invoke(say("APPLE"), config);
    expect(await texts(kept)).toEqual(["HELLO", "plain", "APPLE", "first APPLE", "second APPLE"]);
  });
});

describe("a version", () => {
  const saver = guardCheckpointer(new MemorySaver(), { tp: createTwiceproof({ store: memoryStore() }) });

  it("is one that nobody else draws, and greater than the one before", () => {
    const drawn = new Set<number>();
    let current: number | undefined;
    for (let round = 0; round < 1_000; round++) {
      const next = saver.getNextVersion(current);
      expect(next).toBeGreaterThan(current ?? 0);
      expect(saver.getNextVersion(current)).not.toBe(next);
      drawn.add(next);
      current = next;
    }
    expect(drawn.size).toBe(1_000);
    expect(Math.floor(current ?? 0)).toBe(1_000);
  });

  it("that a saver draws as text is left to it", () => {
    class Texts extends MemorySaver {
      override getNextVersion(current: number | undefined): number {
        return `${Number(current ?? 0) + 1}.x` as unknown as number;
      }
    }
    const guarded = guardCheckpointer(new Texts(), { tp: createTwiceproof({ store: memoryStore() }) });
    expect(guarded.getNextVersion(undefined)).toBe("1.x");
  });
});
