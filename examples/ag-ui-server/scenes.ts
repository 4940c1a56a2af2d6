import { randomUUID } from "node:crypto";
import { ask, type Told } from "./client.ts";
import { answerTo } from "./model.ts";
import type { Servers, Stage } from "./stage.ts";

export interface Scene {
  readonly title: string;
  /** What was seen, step by step, and what should have been. */
  play(stage: Stage, servers: Servers): Promise<readonly Step[]>;
}

type Step = readonly [what: string, seen: string, expected: string];

export const scenes: readonly Scene[] = [
  {
    title: "A server stands still past its lease, just before it stores the answer: a lock with a lease alone",
    play: (stage) => standStill(stage, "/lease-alone", "lost"),
  },
  {
    title: "The same, Twiceproof",
    play: (stage) => standStill(stage, "/wait", "stands"),
  },
  { title: "The same run is sent twice, Twiceproof", play: sameRun },
];

async function standStill(stage: Stage, route: string, expected: "lost" | "stands"): Promise<readonly Step[]> {
  const thread = randomUUID();
  // By default a silent server is believed for 30 s.
  const [one, two] = await stage.startServers({ LEASE_MS: "1000", STAND_STILL_AFTER: "APPLE" });
  const { apple, text } = begin(one.url + route, thread, "APPLE");
  await text;
  const banana = await ask(two.url + route, thread, "BANANA");
  // More than once: on a machine that is slow enough, the lease is over before it stands still.
  const waking = setInterval(one.wake, 100);
  const told = await apple.finally(() => clearInterval(waking));
  const held = await textOf(stage, thread);
  return [
    ["BANANA, when the lease is over", saidOf(banana), "finished"],
    ["APPLE, when its server goes on", saidOf(told), "failed: RUN_LOST"],
    [
      `BANANA's turn (the thread: ${held})`,
      held.includes(`BANANA | ${answerTo("BANANA")}`) ? "stands" : "lost",
      expected,
    ],
  ];
}

async function sameRun(stage: Stage, [one, two]: Servers): Promise<readonly Step[]> {
  const thread = randomUUID();
  const runId = randomUUID();
  const { apple, text } = begin(`${one.url}/wait`, thread, "APPLE at length", runId);
  await text;
  const meanwhile = await ask(`${two.url}/wait`, thread, "APPLE at length", { runId });
  const first = await apple;
  const later = await ask(`${two.url}/wait`, thread, "APPLE at length", { runId });
  const isSame = JSON.stringify(later.snapshot) === JSON.stringify(first.snapshot);
  return [
    ["while it runs", saidOf(meanwhile), "refused: RUN_IN_PROGRESS"],
    ["when it is over", `${saidOf(later)}, ${isSame ? "the same" : "another"} snapshot`, "finished, the same snapshot"],
    ["the thread", await textOf(stage, thread), `APPLE at length | ${answerTo("APPLE at length")}`],
  ];
}

/** `text` resolves with the first piece of the answer: it has the thread, and its model is at work. */
function begin(
  url: string,
  thread: string,
  question: string,
  runId: string = randomUUID(),
): { readonly apple: Promise<Told>; readonly text: Promise<unknown> } {
  const { promise, resolve } = Promise.withResolvers<void>();
  const apple = ask(url, thread, question, { runId, onText: resolve });
  // An answer without text, or none: then there is nothing to wait for.
  return { apple, text: Promise.race([promise, apple]) };
}

function saidOf({ outcome, code }: Told): string {
  return code === undefined ? outcome : `${outcome}: ${code}`;
}

async function textOf(stage: Stage, thread: string): Promise<string> {
  return (await stage.read(thread)).map(({ content }) => content).join(" | ");
}
