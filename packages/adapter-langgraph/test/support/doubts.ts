import { Command, interrupt, MemorySaver } from "@langchain/langgraph";
import { createTwiceproof, done, memoryStore, notDone, refused } from "@twiceproof/core";
import { describe, expect, it } from "vitest";
import { type DoubtInterrupt, doubtResume, isDoubtInterrupt } from "../../src/index.ts";
import type { Runnable, Scene } from "./graphs.ts";
import { wishing } from "./model.ts";
import { rejection } from "./waiting.ts";

export const human = { messages: [{ role: "user", content: "go" }] };
export const config = { configurable: { thread_id: "thread" } };
export const by = { who: "ana", why: "asked the provider" };
const unknown = /^The outcome of "charge" is unknown \(ref [0-9a-f]{8}\)\. It may have happened\./;

export function scene(charge: Scene["charge"], more: Partial<Scene> = {}): Scene {
  const tp = createTwiceproof({ store: memoryStore() });
  return { tp, model: wishing({ name: "charge", args: { n: 0 } }), saver: new MemorySaver(), charge, ...more };
}

/** Throws the first time, as if its answer had been lost. */
export function losing(): { readonly charge: Scene["charge"]; readonly count: () => number } {
  let count = 0;
  const charge = (): string => {
    if (++count === 1) throw new Error("connection reset");
    return `charged at attempt ${count}`;
  };
  return { charge, count: () => count };
}

async function resolve(tp: Scene["tp"], id: string | undefined, verdict: Parameters<typeof tp.doubts.resolve>[1]) {
  const doubt = await tp.doubts.get(id ?? "");
  expect(await tp.doubts.resolve(doubt ?? expect.fail("no doubt"), verdict, by)).toBe("applied");
}

/** Nothing of a doubt is in what a model was given. */
function expectNoDoubtGiven(model: Scene["model"]): void {
  for (const given of model.given) expect(given).not.toMatch(/unknown|GraphInterrupt|in doubt|mistakes/i);
}

/** What holds of a doubt, however its tool is guarded. */
export function doubtSuite(ways: Readonly<Record<string, (scene: Scene) => Runnable>>): void {
  describe.each(Object.entries(ways))("a doubt in %s", (_, build) => {
    it("2: rejects at the boundary, stands in the checkpoint, and goes on with the verdict's result", async () => {
      const { charge, count } = losing();
      const here = scene(charge);
      const graph = build(here);
      const error = await rejection(graph.invoke(human, config));
      expect(error).toMatchObject({ code: "EFFECT_IN_DOUBT", message: expect.stringMatching(unknown) });
      expect(here.model.given).toHaveLength(1);
      expect((await graph.getState(config)).next).toEqual(["tools"]);
      expect(await rejection(graph.invoke(null, config))).toMatchObject({ code: "EFFECT_IN_DOUBT", id: error.id });
      await resolve(here.tp, error.id, done("charged, says the provider"));
      const { messages } = await build(here).invoke(null, config);
      expect(messages.map(({ content }) => content)).toEqual(["go", "", "charged, says the provider", "done"]);
      expect(count()).toBe(1);
      expectNoDoubtGiven(here.model);
    });

    it("19: runs again only after a verdict that it did not happen", async () => {
      const { charge, count } = losing();
      const here = scene(charge);
      const error = await rejection(build(here).invoke(human, config));
      await resolve(here.tp, error.id, notDone());
      const { messages } = await build(here).invoke(null, config);
      expect(messages.at(-2)?.content).toBe("charged at attempt 2");
      expect(count()).toBe(2);
    });

    it("15: is settled by a resume that carries the verdict, which is kept with who and why", async () => {
      const { charge, count } = losing();
      const here = scene(charge);
      const graph = build({ ...here, inDoubt: "stop" });
      const { __interrupt__: interrupts = [] } = await graph.invoke(human, config);
      expect(interrupts).toHaveLength(1);
      const [{ value } = { value: undefined }] = interrupts;
      expect(isDoubtInterrupt(value)).toBe(true);
      expect(value).toMatchObject({ tool: "charge", message: expect.stringMatching(unknown) });
      const { messages } = await graph.invoke(doubtResume(interrupts, done("by hand"), by), config);
      expect(messages.at(-2)?.content).toBe("by hand");
      expect(count()).toBe(1);
      const history = await here.tp.doubts.history((value as DoubtInterrupt).id);
      expect(history).toContainEqual(expect.objectContaining(by));
      expectNoDoubtGiven(here.model);
    });

    it("tells a model why a tool was refused or did not run, and nothing more", async () => {
      const here = scene(() => {
        throw refused("the card is blocked");
      });
      const { messages } = await build(here)
        .invoke(human, config)
        .catch((error) => {
          // With a middleware of its own, or without handling, the framework lets a tool's error out.
          expect(error).toMatchObject({ message: expect.stringContaining("the card is blocked") });
          return { messages: [{ content: "the card is blocked" }] };
        });
      expect(messages.some(({ content }) => String(content).includes("the card is blocked"))).toBe(true);
    });

    it("an interrupt inside of an effect is a doubt, unless the effect says that it may", async () => {
      const asking = (): string => `charged, says ${interrupt("sure?")}`;
      const here = scene(asking);
      const error = await rejection(build(here).invoke(human, config));
      expect(error.code).toBe("EFFECT_IN_DOUBT");
      const history = await here.tp.doubts.history(error.id ?? "");
      expect(JSON.stringify(history)).toContain("Ask before the effect");

      const may = scene(asking, { rules: { mayInterrupt: true } });
      const graph = build(may);
      expect((await graph.invoke(human, config)).__interrupt__).toMatchObject([{ value: "sure?" }]);
      const { messages } = await graph.invoke(new Command({ resume: "ana" }), config);
      expect(messages.at(-2)?.content).toBe("charged, says ana");
      expect((await may.tp.doubts.list()).doubts).toEqual([]);
    });
  });

  describe("several doubts at once", () => {
    const wishes = [0, 1, 2].map((n) => ({ name: "charge", args: { n } }));

    it.each(Object.entries(ways))("are matched by their ids in %s", async (_, build) => {
      const bodies: number[] = [];
      const here = scene(
        ({ n }) => {
          bodies.push(n);
          throw new Error("lost");
        },
        { model: wishing(...wishes) },
      );
      const graph = build({ ...here, inDoubt: "stop" });
      let state = await graph.invoke(human, config);
      const names = new Map<string, string>();
      // In one task only one of them comes to light at a time.
      for (let round = 0; state.__interrupt__ !== undefined && round < 4; round++) {
        for (const { id } of (await here.tp.doubts.list()).doubts)
          if (!names.has(id)) names.set(id, `done ${names.size}`);
        state = await graph.invoke(
          doubtResume(state.__interrupt__, ({ id }) => done(names.get(id)), by),
          config,
        );
      }
      expect(bodies.toSorted()).toEqual([0, 1, 2]);
      expect(
        state.messages
          .slice(2, -1)
          .map(({ content }) => content)
          .toSorted(),
      ).toEqual(["done 0", "done 1", "done 2"]);
      expectNoDoubtGiven(here.model);
    });
  });
}
