import { createTwiceproof } from "@twiceproof/core";
import { describe, expect, it } from "vitest";
import { underRun } from "../src/index.ts";
import { together } from "./support/places.ts";
import { config, echo, operator, say, texts, thread, unlock } from "./support/thread.ts";
import { gate, rejection } from "./support/waiting.ts";

const open = together["SqliteSaver, in one file"] ?? expect.fail("no such place");
const answered = ["one", "first one", "second one"];

describe("a graph under a run that its caller holds", () => {
  it("1: works and is edited under that lock, which is held on until the caller lets go", async () => {
    const kept = await open();
    const { graph, tp } = echo(kept);
    const other = echo(kept);
    const inside = gate();
    const letOn = gate();
    const outside = tp.withRun({ thread, runId: "outer" }, async (run) => {
      await graph.invoke(say("one"), underRun(run, config));
      inside.open();
      await letOn.opened;
      await graph.updateState(underRun(run, config), say("noted"), "second");
    });
    await inside.opened;
    const refused = { code: "THREAD_BUSY", holder: { runId: "outer" } };
    expect(await rejection(other.graph.invoke(say("two"), config))).toMatchObject(refused);
    letOn.open();
    await outside;
    expect(await texts(kept)).toEqual([...answered, "noted"]);
    await other.graph.invoke(say("two"), config);
  });

  it("is remembered with the run: the same run again does nothing", async () => {
    const kept = await open();
    const { graph, tp } = echo(kept);
    const answer = () =>
      tp.withRun({ thread, runId: "outer" }, async (run) => {
        const { messages } = await graph.invoke(say("one"), underRun(run, config));
        return messages.map(({ text }) => text);
      });
    expect([await answer(), await answer()]).toEqual([answered, answered]);
    expect(await texts(kept)).toEqual(answered);
  });

  it("14: saves nothing once that run has lost the thread, and rejects with RUN_LOST", async () => {
    const kept = await open();
    const { graph, tp } = echo(kept, () => unlock(tp));
    let inside: Promise<unknown> | undefined;
    const outside = tp.withRun({ thread }, async (run) => {
      inside = graph.invoke(say("one"), underRun(run, config));
      await inside;
    });
    expect((await rejection(outside)).code).toBe("RUN_LOST");
    expect((await rejection(inside as Promise<unknown>)).code).toBe("RUN_LOST");
    expect(await texts(kept)).toEqual(["one"]);
  });

  it("is stopped with it, and may still be edited: the thread is held until the caller is through", async () => {
    const kept = await open();
    const { graph, tp } = echo(kept, (given) => {
      void tp.threads.cancel(thread, { runId: "outer", ...operator });
      return new Promise((_, reject) => given.signal?.addEventListener("abort", () => reject(given.signal?.reason)));
    });
    await tp.withRun({ thread, runId: "outer" }, async (run) => {
      expect((await rejection(graph.invoke(say("one"), underRun(run, config)))).code).toBe("RUN_CANCELLED");
      await graph.updateState(underRun(run, config), say("(stopped)"), "second");
    });
    expect(await texts(kept)).toEqual(["one", "(stopped)"]);
  });

  it.each<[string, string, { readonly lock: false } | object]>([
    ["on another thread", "another", {}],
    ["that holds no lock", thread, { lock: false }],
  ])("refuses a run %s, and has changed nothing", async (_, runThread, options) => {
    const kept = await open();
    const { graph, tp } = echo(kept);
    const refused = tp.withRun({ thread: runThread, ...options }, (run) =>
      graph.invoke(say("one"), underRun(run, config)),
    );
    expect(await rejection(refused)).toMatchObject({ code: "INVALID_ARGUMENT" });
    expect(await texts(kept)).toEqual([]);
  });

  it("refuses a run of another tp, which says nothing about this one's thread", async () => {
    const kept = await open();
    const { graph } = echo(kept);
    const other = createTwiceproof({ store: kept.store, namespace: "other" });
    const refused = other.withRun({ thread }, (run) => graph.invoke(say("one"), underRun(run, config)));
    expect((await rejection(refused)).code).toBe("RUN_LOST");
    expect(await texts(kept)).toEqual([]);
  });
});
