import { tool } from "@langchain/core/tools";
import { MemorySaver } from "@langchain/langgraph";
import { createTwiceproof, memoryStore, type Twiceproof } from "@twiceproof/core";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { guardTool } from "../src/index.ts";
import { config, echo, operator, say, thread, unlock } from "./support/thread.ts";
import { gate, rejection, until } from "./support/waiting.ts";

interface Events extends AsyncIterable<unknown> {
  readonly output: Promise<{ readonly messages: readonly unknown[] }>;
  readonly values: AsyncIterable<unknown> & PromiseLike<{ readonly messages: readonly unknown[] }>;
  readonly signal: AbortSignal;
}

interface V3 {
  streamEvents(input: unknown, config: object): Promise<Events>;
}

async function drain(iterable: AsyncIterable<unknown>): Promise<number> {
  let count = 0;
  for await (const _ of iterable) count++;
  return count;
}

const readers: Readonly<Record<string, (events: Events) => Promise<unknown>>> = {
  output: (events) => events.output,
  iteration: (events) => drain(events),
  "iteration of the values": (events) => drain(events.values),
  values: async (events) => await events.values,
};

const stops: Readonly<Record<string, (tp: Twiceproof, other: Twiceproof) => Promise<unknown>>> = {
  // By another worker: this one hears of it when it saves.
  RUN_LOST: (_, other) => unlock(other),
  async RUN_CANCELLED(tp) {
    const { runId } = (await tp.threads.get(thread)) ?? expect.fail("nobody holds it");
    expect.assert(runId !== null);
    await tp.threads.cancel(thread, { runId, ...operator });
  },
};

function scene(stop: (tp: Twiceproof, other: Twiceproof) => Promise<unknown> = async () => undefined) {
  const store = memoryStore();
  const other = createTwiceproof({ store });
  const letOn = gate();
  const made = echo(
    { saver: new MemorySaver(), store },
    async () => {
      await letOn.opened;
      await stop(made.tp, other);
      // What LangGraph is told when such a tool has lost its run looks to it like an end that is none of an error.
      const work = tool(() => "worked", { name: "work", description: "works", schema: z.object({}) });
      await guardTool(work, { tp: made.tp }).invoke({});
    },
    { inDoubt: "stop" },
  );
  const start = () => (made.graph as unknown as V3).streamEvents(say("one"), { ...config, version: "v3" });
  return { start, letOn, tp: made.tp };
}

describe.each(Object.entries(stops))("events of version 3 of a run that ends with %s", (code, stop) => {
  it.each(Object.entries(readers))("14: end with it too: %s", async (_, read) => {
    const { start, letOn } = scene(stop);
    const reading = rejection(read(await start()));
    letOn.open();
    expect(await reading).toMatchObject({ code });
  });

  it("trouble nobody who does not read them", async () => {
    const unhandled: unknown[] = [];
    const hear = (reason: unknown) => unhandled.push(reason);
    process.on("unhandledRejection", hear);
    try {
      const { start, letOn, tp } = scene(stop);
      const { signal } = await start();
      expect(signal.aborted).toBe(false);
      letOn.open();
      await until(async () => (await tp.threads.get(thread)) === null);
      // Node tells of them when its queue of microtasks is empty.
      await new Promise(setImmediate);
      expect(unhandled).toEqual([]);
    } finally {
      process.off("unhandledRejection", hear);
    }
  });
});

it.each(Object.entries(readers))("events of version 3 of a run that ends well do so: %s", async (_, read) => {
  const { start, letOn } = scene();
  const events = await start();
  letOn.open();
  expect(await read(events)).toBeTruthy();
  expect((await events.output).messages).toHaveLength(3);
});
