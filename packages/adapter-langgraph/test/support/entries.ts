import { MemorySaver } from "@langchain/langgraph";
import { createTwiceproof, memoryStore } from "@twiceproof/core";
import { describe, expect, it } from "vitest";
import { isDoubtInterrupt } from "../../src/index.ts";
import type { Runnable, Scene } from "./graphs.ts";
import { wishing } from "./model.ts";
import { rejection } from "./waiting.ts";

export const human = { messages: [{ role: "user", content: "go" }] };
export const config = { configurable: { thread_id: "thread" } };

export function scene(more: Partial<Scene> = {}): Scene {
  return {
    tp: createTwiceproof({ store: memoryStore() }),
    model: wishing({ name: "charge", args: { n: 0 } }),
    saver: new MemorySaver(),
    charge: () => Promise.reject(new Error("lost")),
    ...more,
  };
}

interface Entries {
  stream(input: unknown, config: object): Promise<AsyncIterable<unknown>>;
  streamEvents(input: unknown, config: object): AsyncIterable<unknown> & Promise<AsyncIterable<unknown>>;
  batch(inputs: unknown[], config: object[]): Promise<unknown[]>;
  withConfig(config: object): Entries;
  invoke(input: unknown, config?: object): Promise<{ messages: unknown[]; __interrupt__?: { value: unknown }[] }>;
}

async function drain(stream: AsyncIterable<unknown>): Promise<unknown[]> {
  const chunks: unknown[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return chunks;
}

/** What holds of all ways into a run. */
export function entrySuite(
  name: string,
  build: ((scene: Scene) => Runnable) | undefined = () => expect.fail(name),
): void {
  describe(`a doubt at the end of ${name}`, () => {
    const entries = (more?: Partial<Scene>) => build(scene(more)) as unknown as Entries;

    it.each(["values", "updates", "messages", "custom", ["updates", "custom"], ["values"]])(
      "a stream of %s rejects, after its last chunk",
      async (streamMode) => {
        const stream = await entries().stream(human, { ...config, streamMode });
        expect(await rejection(drain(stream))).toMatchObject({ code: "EFFECT_IN_DOUBT" });
      },
    );

    it("so does a stream of subgraphs, a stream of events, and a batch", async () => {
      const doubt = { code: "EFFECT_IN_DOUBT" };
      const stream = await entries().stream(human, { ...config, streamMode: "updates", subgraphs: true });
      expect(await rejection(drain(stream))).toMatchObject(doubt);
      const events = entries().streamEvents(human, { ...config, version: "v2" });
      expect(await rejection(drain(events))).toMatchObject(doubt);
      const graph = entries();
      if (graph.batch !== undefined) expect(await rejection(graph.batch([human], [config]))).toMatchObject(doubt);
    });

    it("so does a graph with a config of its own, which holds the thread", async () => {
      const graph = entries().withConfig(config);
      expect(await rejection(graph.invoke(human))).toMatchObject({ code: "EFFECT_IN_DOUBT" });
    });

    it("with `stop` the interrupt is in what is streamed, and returned", async () => {
      const chunks = await drain(
        await entries({ inDoubt: "stop" }).stream(human, { ...config, streamMode: "updates" }),
      );
      const { __interrupt__ } = chunks.at(-1) as { __interrupt__: { value: unknown }[] };
      expect(__interrupt__.map(({ value }) => isDoubtInterrupt(value))).toEqual([true]);
      const { __interrupt__: returned } = await entries({ inDoubt: "stop" }).invoke(human, config);
      expect(returned?.map(({ value }) => isDoubtInterrupt(value))).toEqual([true]);
    });

    it("events of version 3 are for those who show interrupts", () => {
      expect(() => entries().streamEvents(human, { ...config, version: "v3" })).toThrow(/inDoubt: "stop"/);
    });

    it("a stream that nobody reads further is called off", async () => {
      const { promise, resolve } = Promise.withResolvers<string>();
      let signal: AbortSignal | undefined;
      const charge: Scene["charge"] = (_, config) => {
        signal = config.signal;
        return promise;
      };
      for await (const _ of await entries({ charge }).stream(human, { ...config, streamMode: "updates" })) {
        await expect.poll(() => signal).toBeDefined();
        break;
      }
      await expect.poll(() => signal?.aborted).toBe(true);
      resolve("charged");
    });

    it("a run that is told to save nothing before its end is refused", async () => {
      const graph = entries();
      for (const more of [{ durability: "exit" }, { checkpointDuring: false }])
        expect(await rejection(graph.invoke(human, { ...config, ...more }))).toMatchObject({
          code: "INVALID_ARGUMENT",
        });
    });
  });
}
