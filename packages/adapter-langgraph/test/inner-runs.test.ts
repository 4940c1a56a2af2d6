import { AIMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { END, MemorySaver, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { done } from "@twiceproof/core";
import { type CrashPoint, testTwiceproof } from "@twiceproof/core/testing";
import { describe, expect, it, onTestFinished } from "vitest";
import { z } from "zod";
import { guardCheckpointer, guardGraph } from "../src/index.ts";
import { byGuardTool, handBuilt, type Runnable, type Scene, toolNode } from "./support/graphs.ts";
import { wishing } from "./support/model.ts";
import { rejection } from "./support/waiting.ts";

const says = (content: string, id?: string) => ({ messages: [{ role: "user", content, ...(id && { id }) }] });
const job = { configurable: { thread_id: "thread", run_id: "job" } };

/** How the inner graph is called. Its own thread is all that these have in common. */
const calls: Readonly<Record<string, (config: object) => object>> = {
  "by its thread": () => ({ configurable: { thread_id: "sub" } }),
  "with the config handed on": (config: { configurable?: object }) => ({
    ...config,
    configurable: { ...config.configurable, thread_id: "sub" },
  }),
  "at the root of its thread": () => ({ configurable: { thread_id: "sub", checkpoint_ns: "" } }),
};

function setup(call: (config: object) => object) {
  const kit = testTwiceproof();
  onTestFinished(() => kit.close());
  const { tp } = kit;
  const saver = new MemorySaver();
  const here = { count: 0, asked: [] as string[] };
  const scene = (more: Partial<Scene>): Scene => ({
    tp,
    model: wishing({ name: "charge", args: { n: 0 } }),
    saver: guardCheckpointer(saver, { tp }),
    charge: () => `charged ${++here.count}`,
    ...more,
  });
  /** A worker's own graphs. */
  const inner = () => {
    const made = scene({});
    return guardGraph(handBuilt(made, toolNode([byGuardTool(made)])), { tp });
  };
  const inTool = () => {
    const sub = inner();
    const task = tool(async ({ q }, config) => (await sub.invoke(says(q), call(config))).messages.at(-2)?.content, {
      name: "task",
      description: "asks",
      schema: z.object({ q: z.string() }),
    });
    const made = scene({ model: wishing({ name: "task", args: { q: "charge it" } }) });
    return guardGraph(handBuilt(made, toolNode([task as never])), { tp });
  };
  const inNode = (...texts: string[]) => {
    const sub = inner();
    const graph = new StateGraph(MessagesAnnotation)
      .addNode("ask", async (_, config) => {
        const answers: unknown[] = [];
        for (const text of texts) {
          const { messages } = await sub.invoke(says(text), call(config));
          here.asked.push(
            messages
              .filter(({ type }) => type === "human")
              .map(({ content }) => content)
              .join(),
          );
          answers.push(messages.at(-2)?.content);
        }
        return { messages: [new AIMessage(answers.join())] };
      })
      .addEdge(START, "ask")
      .addEdge("ask", END)
      .compile({ checkpointer: guardCheckpointer(saver, { tp }) });
    return guardGraph(graph, { tp }) as unknown as Runnable;
  };
  return { kit, here, saver, inTool, inNode };
}

describe.each(Object.entries(calls))("2: a guarded graph on a thread of its own, called %s", (_, call) => {
  it.each<[CrashPoint, number, "inTool" | "inNode"]>([
    ["before-record", 1, "inTool"],
    ["before-record", 1, "inNode"],
    ["after-claim", 0, "inTool"],
    ["after-claim", 0, "inNode"],
  ])(
    "its worker dies %s (%i): the job sent again is in doubt, and heeds the verdict, %s",
    async (point, count, where) => {
      const { kit, here, inTool, inNode } = setup(call);
      const build = () => (where === "inTool" ? inTool() : inNode("charge it"));
      await kit.crash(point, () => build().invoke(says("go"), job));
      kit.lapse();
      const { code, id = "" } = await rejection(build().invoke(says("go"), job));
      expect(code).toBe("EFFECT_IN_DOUBT");
      const doubt = (await kit.tp.doubts.get(id)) ?? expect.fail("no doubt");
      await kit.tp.doubts.resolve(doubt, done("by hand"), { who: "ana", why: "asked" });
      const { messages } = await build().invoke(says("go"), job);
      expect(JSON.stringify(messages)).toContain("by hand");
      expect(here.count).toBe(count);
    },
  );

  it("and the checkpoints of both are lost: nothing is charged again", async () => {
    const { here, saver, inTool } = setup(call);
    await inTool().invoke(says("go"), job);
    for (const thread of ["thread", "sub"]) await saver.deleteThread(thread);
    await inTool().invoke(says("go"), job);
    expect(here.count).toBe(1);
  });

  it("is told each of two messages, and another job's", async () => {
    const { here, inNode } = setup(call);
    await inNode("first", "second").invoke(says("go"), job);
    expect(here.asked.map((texts) => texts.split(",").at(-1))).toEqual(["first", "second"]);
    expect(here.count).toBe(2);
    await inNode("first").invoke(says("go"), { configurable: { thread_id: "thread", run_id: "job-2" } });
    expect(here.count).toBe(3);
  });

  it("is called again by a step that is tried again: nothing is charged again", async () => {
    const { here, inNode } = setup(call);
    const { messages } = await inNode("first", "first").invoke(says("go"), job);
    expect(messages.at(-1)?.content).toBe("charged 1,charged 1");
    expect(here.count).toBe(1);
  });
});
