import { tool } from "@langchain/core/tools";
import {
  Annotation,
  type BaseCheckpointSaver,
  Command,
  END,
  MemorySaver,
  START,
  StateGraph,
  type StateSnapshot,
} from "@langchain/langgraph";
import { createTwiceproof, memoryStore, type Twiceproof } from "@twiceproof/core";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { guardCheckpointer, guardGraph, guardTool, type ToolRules } from "../src/index.ts";
import { byGuardTool, handBuilt, others, type Runnable, type Scene, toolNode } from "./support/graphs.ts";
import { ScriptedModel, wishing } from "./support/model.ts";
import { rejection } from "./support/waiting.ts";

/** What a worker leaves behind: the claims, and the checkpoints if they were saved. */
interface Left {
  readonly tp: Twiceproof;
  saver: BaseCheckpointSaver;
  count: number;
  /** The step fails after the effect was recorded, until this is set: what a death at that point leaves. */
  alive: boolean;
}

function left(): Left {
  return { tp: createTwiceproof({ store: memoryStore() }), saver: new MemorySaver(), count: 0, alive: false };
}

function scene(here: Left, rules: ToolRules<never> = {}): Scene {
  return {
    tp: here.tp,
    saver: here.saver,
    model: wishing({ name: "charge", args: { n: 0 } }, { name: "die", args: { n: 1 } }),
    rules,
    charge: () => `charged ${++here.count}`,
    others: {
      async die() {
        while (here.count === 0) await new Promise((resolve) => setTimeout(resolve, 1));
        if (!here.alive) throw new TypeError("the worker died");
        return "alive";
      },
    },
  };
}

/** Tools guarded, and nothing else: as on a platform that has the graph. */
function bare(here: Left, rules?: ToolRules<never>, saver = here.saver): Runnable {
  const made = { ...scene(here, rules), saver };
  return handBuilt(made, toolNode([byGuardTool(made), ...others(made)]));
}

function whole(here: Left, rules?: ToolRules<never>): Runnable {
  const saver = guardCheckpointer(here.saver, { tp: here.tp });
  return guardGraph(bare(here, rules, saver), { tp: here.tp });
}

const says = (id?: string) => ({ messages: [{ role: "user", content: "go", ...(id && { id }) }] });
const thread = (more: object = {}, thread_id = "thread") => ({ configurable: { thread_id, ...more } });

/** Each row: how the run is started, how it is sent again, and how often the effect happened then. */
type Row = readonly [
  what: string,
  build: typeof bare,
  first: readonly [unknown, object],
  second: readonly [unknown, object],
  count: number,
  change: ((here: Left) => Left) | undefined,
];

/** All ids change, as when the platform lost the checkpoints, or never had any. */
const lostCheckpoints = (here: Left): Left => Object.assign(here, { saver: new MemorySaver() });

interface Editable extends Runnable {
  updateState(config: object, values: object): Promise<unknown>;
}

const run = (run_id: string) => thread({ run_id });

const rows: readonly Row[] = [
  ["guarded graph: resumed from its checkpoint", whole, [says(), thread()], [null, thread()], 1, undefined],
  ["guarded graph: the input again, with its run id", whole, [says(), run("r1")], [says(), run("r1")], 1, undefined],
  [
    "guarded graph: the same, its checkpoints lost",
    whole,
    [says(), run("r1")],
    [says(), run("r1")],
    1,
    lostCheckpoints,
  ],
  ["guarded graph: resumed under a run id of its own", whole, [says(), run("r1")], [null, run("r2")], 1, undefined],
  [
    "guarded graph: the input again, with its message's id",
    whole,
    [says("m1"), thread()],
    [says("m1"), thread()],
    1,
    undefined,
  ],
  [
    "guarded graph: the same, and traces call each attempt by another id",
    whole,
    [says("m1"), { ...thread(), runId: "a50b1f6e-3f3c-4c8e-8d1a-0d9a0a1b2c01" }],
    [says("m1"), { ...thread(), runId: "a50b1f6e-3f3c-4c8e-8d1a-0d9a0a1b2c02" }],
    1,
    undefined,
  ],
  [
    "guarded graph: resumed, and traces call each attempt by another id",
    whole,
    [says("m1"), { ...thread(), runId: "a50b1f6e-3f3c-4c8e-8d1a-0d9a0a1b2c01" }],
    [null, { ...thread(), runId: "a50b1f6e-3f3c-4c8e-8d1a-0d9a0a1b2c02" }],
    1,
    undefined,
  ],
  ["guarded graph: the input again, with no id at all", whole, [says(), thread()], [says(), thread()], 2, undefined],
  ["guarded graph: the input again, as another run", whole, [says(), run("r1")], [says(), run("r2")], 2, undefined],
  ["tools alone: resumed from its checkpoint", bare, [says(), thread()], [null, thread()], 1, undefined],
  ["tools alone: resumed from its checkpoint, in a run", bare, [says(), run("r1")], [null, run("r1")], 1, undefined],
  ["tools alone: the input again, with its run id", bare, [says(), run("r1")], [says(), run("r1")], 1, undefined],
  ["tools alone: the same, its checkpoints lost", bare, [says(), run("r1")], [says(), run("r1")], 1, lostCheckpoints],
  ["tools alone: resumed under a run id of its own", bare, [says(), run("r1")], [null, run("r2")], 2, undefined],
  [
    "tools alone: the input again, with its message's id",
    bare,
    [says("m1"), thread()],
    [says("m1"), thread()],
    1,
    undefined,
  ],
  ["tools alone: the input again, with no id at all", bare, [says(), thread()], [says(), thread()], 2, undefined],
];

describe("what is sent again", () => {
  it.each(rows)("%s", async (_, build, [firstInput, firstConfig], [secondInput, secondConfig], count, change) => {
    const here = left();
    await rejection(build(here).invoke(firstInput, firstConfig));
    expect(here.count).toBe(1);
    here.alive = true;
    change?.(here);
    const { messages } = await build(here).invoke(secondInput, secondConfig);
    expect(messages.at(-1)?.content).toBe("done");
    expect(here.count).toBe(count);
  });

  it.each([
    ["the turn", {}, 1, 2],
    ["the call", { identity: "call" }, 2, 4],
    ["a key", { key: () => "charge:o-1" }, 1, 1],
  ] as const)("identity by %s: two equal calls of one turn, and of another turn", async (_, rules, one, two) => {
    const here = Object.assign(left(), { alive: true });
    const twice = (): Runnable => {
      const wishes = [0, 0].map((n) => ({ name: "charge", args: { n } }));
      const made = { ...scene(here, rules as ToolRules<never>), model: wishing(...wishes) };
      return guardGraph(
        handBuilt({ ...made, saver: guardCheckpointer(here.saver, { tp: here.tp }) }, toolNode([byGuardTool(made)])),
        { tp: here.tp },
      );
    };
    await twice().invoke(says(), run("r1"));
    expect(here.count).toBe(one);
    await twice().invoke(says(), run("r2"));
    expect(here.count).toBe(two);
    await twice().invoke(says(), thread({ run_id: "r1" }, "another thread"));
    expect(here.count).toBe("key" in rules ? 1 : two + one);
  });

  it("a run that the platform resumes under a new id keeps its turn when checkpoints say whose input it was", async () => {
    const here = left();
    const saver = guardCheckpointer(here.saver, { tp: here.tp });
    await rejection(bare(Object.assign(here, { saver })).invoke(says(), run("r1")));
    here.alive = true;
    await bare(here).invoke(new Command({ resume: "whatever" }), run("r2"));
    expect(here.count).toBe(1);
  });

  it.each<[string, (graph: Editable) => Promise<unknown>]>([
    ["was resumed under another id", (graph) => rejection(graph.invoke(null, run("r2")))],
    ["had its state edited", (graph) => graph.updateState(thread(), { messages: [] })],
  ])("the input again, with its run id, after the run %s: goes on with its turn", async (_, act) => {
    const here = left();
    await rejection(whole(here).invoke(says(), run("r1")));
    await act(whole(here) as Editable);
    here.alive = true;
    const { messages } = await whole(here).invoke(says(), run("r1"));
    expect(messages.map(({ type }) => type)).toEqual(["human", "ai", "tool", "tool", "ai"]);
    expect(here.count).toBe(1);
  });

  it("the input again, with its run id, after another run: is a second turn, in which the same call is answered", async () => {
    const here = Object.assign(left(), { alive: true });
    for (const id of ["r1", "r2", "r1"]) await whole(here).invoke(says(), run(id));
    const { values } = await whole(here).getState(thread());
    expect(values.messages.filter(({ type }) => type === "human")).toHaveLength(3);
    expect(here.count).toBe(2);
  });

  it("time travel within a turn gives what is on record", async () => {
    const here = Object.assign(left(), { alive: true });
    const graph = whole(here) as Runnable & { getStateHistory(config: object): AsyncIterable<StateSnapshot> };
    await graph.invoke(says(), run("r1"));
    for await (const { next, config } of graph.getStateHistory(run("r1")))
      if (next[0] === "tools") {
        const { messages } = await graph.invoke(null, config);
        expect(messages.map(({ content }) => content)).toContain("charged 1");
      }
    expect(here.count).toBe(1);
  });

  it("2: a run that was resumed under new ids again and again keeps its turn in every step", async () => {
    const here = left();
    const saver = guardCheckpointer(here.saver, { tp: here.tp });
    const steps = [0, 1, 2];
    const model = new ScriptedModel((messages) => {
      const n = messages.filter(({ type }) => type === "tool").length / 2;
      return n < steps.length
        ? [
            { name: "charge", args: { n } },
            { name: "die", args: { n } },
          ]
        : "done";
    });
    const build = (lives: number) => {
      let died = false;
      const made: Scene = {
        ...scene(here),
        saver,
        model,
        others: {
          async die({ n }) {
            while (here.count <= n) await new Promise((resolve) => setTimeout(resolve, 1));
            if (n < lives || died) return "alive";
            died = true;
            throw new TypeError("the worker died");
          },
        },
      };
      return handBuilt(made, toolNode([byGuardTool(made), ...others(made)]));
    };
    // Each worker gets one step further, and each resume has an id of its own.
    await rejection(build(0).invoke(says(), run("r0")));
    for (const lives of steps.slice(1)) await rejection(build(lives).invoke(null, run(`r${lives}`)));
    const { messages } = await build(steps.length).invoke(null, run("r9"));
    expect(messages.at(-1)?.content).toBe("done");
    expect(here.count).toBe(steps.length);
  });

  it("a new input is a turn of its own also while its checkpoint is not saved yet", async () => {
    const here = Object.assign(left(), { alive: true });
    const slow = new Proxy(guardCheckpointer(here.saver, { tp: here.tp }), {
      get(target, name) {
        const value: unknown = Reflect.get(target, name);
        if (name !== "put") return value;
        return async (...args: Parameters<typeof target.put>) => {
          await new Promise((resolve) => setTimeout(resolve, 60));
          return await target.put(...args);
        };
      },
    });
    for (const id of ["r1", "r2"]) await bare(here, {}, slow).invoke(says(), { ...run(id), durability: "async" });
    expect(here.count).toBe(2);
  });

  it("a message that came with the resume begins no new turn for calls before it", async () => {
    const here = left();
    await rejection(bare(here).invoke(says(), thread()));
    here.alive = true;
    const update = { messages: [{ role: "user", content: "and hurry", id: "m2" }] };
    await bare(here).invoke(new Command({ resume: "go", update }), thread());
    expect(here.count).toBe(1);
  });
});

describe("without messages", () => {
  it("the state that the call hangs on makes the turn", async () => {
    const here = left();
    const State = Annotation.Root({ answer: Annotation<unknown> });
    const schema = z.object({ n: z.number() });
    const charge = guardTool(
      tool(() => `charged ${++here.count}`, { name: "charge", description: "charges", schema }),
      { tp: here.tp },
    );
    const build = () =>
      new StateGraph(State)
        .addNode("work", async (_, config) => {
          const answer = await charge.invoke({ n: 0 }, config);
          if (!here.alive) throw new Error("the worker died");
          return { answer };
        })
        .addEdge(START, "work")
        .addEdge("work", END)
        .compile({ checkpointer: here.saver });
    await rejection(build().invoke({ answer: 1 }, thread()));
    here.alive = true;
    expect(await build().invoke(null, thread())).toEqual({ answer: "charged 1" });
    expect(await build().invoke({ answer: 2 }, thread())).toEqual({ answer: "charged 2" });
  });

  it("a call without a thread and without a key is refused before anything runs", async () => {
    const here = left();
    const made = scene(here);
    const charge = byGuardTool(made);
    for (const config of [undefined, { configurable: {} }, { configurable: { thread_id: "" } }])
      expect(await rejection(charge.invoke({ n: 0 } as never, config))).toMatchObject({
        code: "IDENTITY_MISSING",
        message: expect.stringContaining('"charge"'),
      });
    expect(await rejection(charge.invoke({ n: 0 } as never, thread()))).toMatchObject({ code: "IDENTITY_MISSING" });
    expect(here.count).toBe(0);
  });
});
