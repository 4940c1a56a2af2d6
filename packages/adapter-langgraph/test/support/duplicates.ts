import { Command, interrupt, MemorySaver } from "@langchain/langgraph";
import { createTwiceproof, memoryStore } from "@twiceproof/core";
import type { Runnable, Scene } from "./graphs.ts";
import { wishing } from "./model.ts";
import { gate, rejection, until } from "./waiting.ts";

/** How often the effect happened, counted where nobody guards it, and how often the model was asked. */
export interface Count {
  readonly charges: number;
  readonly lastMessage: unknown;
}

type Build = (scene: Scene) => Runnable;

const human = { messages: [{ role: "user", content: "go" }] };

function scene(more: Partial<Scene> & Pick<Scene, "charge">): Scene {
  const names = ["charge", ...Object.keys(more.others ?? {})];
  return {
    tp: createTwiceproof({ store: memoryStore() }),
    model: wishing(...names.map((name, n) => ({ name, args: { n } }))),
    saver: new MemorySaver(),
    ...more,
  };
}

async function counted(
  charges: () => number,
  state: Promise<{ messages: readonly { content: unknown }[] }>,
): Promise<Count> {
  const { messages } = await state;
  return { charges: charges(), lastMessage: messages.at(-1)?.content };
}

const config = { configurable: { thread_id: "thread" } };

/** Another tool of the same step asks a person. */
export async function siblingInterrupts(build: Build): Promise<Count> {
  let charges = 0;
  const graph = build(
    scene({ charge: () => `charged ${++charges}`, others: { ask: () => `heard ${interrupt("sure?")}` } }),
  );
  await graph.invoke(human, config);
  await until(() => charges > 0);
  return await counted(() => charges, graph.invoke(new Command({ resume: "yes" }), config));
}

/** Another tool of the same step fails twice, and the step's retry policy runs all of it again. */
export async function retryPolicy(build: Build): Promise<Count> {
  let charges = 0;
  let failures = 0;
  const flaky = async (): Promise<string> => {
    await until(() => charges > failures || (failures > 0 && charges > 0));
    if (++failures < 3) throw new Error("flaky");
    return "done at last";
  };
  const graph = build(
    scene({
      charge: () => `charged ${++charges}`,
      others: { flaky },
      retryPolicy: { maxAttempts: 3, initialInterval: 1, jitter: false, logWarning: false },
    }),
  );
  return await counted(() => charges, graph.invoke(human, config));
}

/** Another tool of the same step fails while the effect is on its way; the run fails, and is resumed. */
export async function fatalSibling(build: Build): Promise<Count> {
  let charges = 0;
  let failed = false;
  const slow = gate();
  const charge = async (): Promise<string> => {
    const mine = ++charges;
    await slow.opened;
    return `charged ${mine}`;
  };
  const fatal = async (): Promise<string> => {
    await until(() => charges > 0);
    if (failed) return "well now";
    failed = true;
    setTimeout(slow.open, 50);
    throw new TypeError("fatal");
  };
  const graph = build(scene({ charge, others: { fatal } }));
  await rejection(graph.invoke(human, config));
  return await counted(() => charges, graph.invoke(null, config));
}

/** The step's time is over before the effect is through; the step is tried again, and then the run is resumed. */
export async function nodeTimeout(build: Build): Promise<Count> {
  let charges = 0;
  const slow = gate();
  const charge = async (): Promise<string> => {
    const mine = ++charges;
    await slow.opened;
    return `charged ${mine}`;
  };
  const graph = build(
    scene({
      charge,
      timeout: { runTimeout: 60 },
      retryPolicy: { maxAttempts: 2, initialInterval: 1, jitter: false, logWarning: false },
    }),
  );
  const error = await rejection(graph.invoke(human, config));
  if (error.name !== "NodeTimeoutError") throw error;
  slow.open();
  return await counted(() => charges, graph.invoke(null, config));
}

/** Whoever reads the stream goes away while the effect is on its way; the run is resumed later. */
export async function consumerBreaks(build: Build): Promise<Count> {
  let charges = 0;
  const slow = gate();
  const charge = async (): Promise<string> => {
    const mine = ++charges;
    await slow.opened;
    return `charged ${mine}`;
  };
  const graph = build(scene({ charge }));
  for await (const _ of await graph.stream(human, { ...config, streamMode: "updates" })) {
    await until(() => charges > 0);
    break;
  }
  setTimeout(slow.open, 50);
  return await counted(() => charges, graph.invoke(null, config));
}

/** The caller's own signal ends the run while the effect is on its way. */
export async function callerAborts(build: Build): Promise<Count> {
  let charges = 0;
  const slow = gate();
  const charge = async (): Promise<string> => {
    const mine = ++charges;
    await slow.opened;
    return `charged ${mine}`;
  };
  const graph = build(scene({ charge }));
  const controller = new AbortController();
  const run = rejection(graph.invoke(human, { ...config, signal: controller.signal }));
  await until(() => charges > 0);
  controller.abort();
  await run;
  setTimeout(slow.open, 20);
  return await counted(() => charges, graph.invoke(null, config));
}
