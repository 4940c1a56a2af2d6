import { Command, MemorySaver } from "@langchain/langgraph";
import { createTwiceproof, memoryStore } from "@twiceproof/core";
import { describe, expect, it } from "vitest";
import type { Runnable, Scene } from "./graphs.ts";
import { wishing } from "./model.ts";
import { gate, rejection, until } from "./waiting.ts";

type Build = (scene: Scene) => Runnable;

const configOf = (run_id: string) => ({ configurable: { thread_id: "thread", run_id } });
const said = (content: string) => ({ messages: [{ role: "user", content }] });

/** The worker is gone as soon as the tool is through: nothing of its step is saved. */
const dying = {
  callbacks: [
    {
      raiseError: true,
      awaitHandlers: true,
      handleToolEnd: () => {
        throw new Error("the worker died");
      },
    },
  ],
};

function scene(charge: Scene["charge"], more: Partial<Scene> = {}): Scene {
  return {
    tp: createTwiceproof({ store: memoryStore() }),
    model: wishing({ name: "charge", args: { n: 0 } }),
    saver: new MemorySaver(),
    charge,
    ...more,
  };
}

/** What the model is given when the next message comes, after the one before; a worker of its own answers it. */
async function heard(build: Build, made: Scene): Promise<readonly string[]> {
  const model = wishing();
  const { messages } = await build({ ...made, model }).invoke(said("and now?"), configOf("second"));
  expect(messages.slice(-2).map(({ type }) => type)).toEqual(["human", "ai"]);
  const [given = ""] = model.given;
  return given.split("\n");
}

export function openCallsSuite(ways: Readonly<Record<string, Build>>): void {
  describe.each(Object.entries(ways))("a new message after a run that left a tool call open: %s", (_, build) => {
    it("2: the model hears the recorded result, and nothing happens again", async () => {
      let charges = 0;
      const made = scene(() => `charged ${++charges}`);
      await rejection(build(made).invoke(said("charge"), { ...configOf("first"), ...dying }));
      expect(await heard(build, made)).toEqual(['human: "charge"', 'ai: ""', 'tool: "charged 1"', 'human: "and now?"']);
      expect(charges).toBe(1);
    });

    it("of a doubt it hears the fixed text alone", async () => {
      const made = scene(() => Promise.reject(new Error("secret")));
      const { code } = await rejection(build(made).invoke(said("charge"), configOf("first")));
      expect(code).toBe("EFFECT_IN_DOUBT");
      const [, , answer, question] = await heard(build, made);
      expect(answer).toMatch(
        /^tool: "The outcome of \\"charge\\" is unknown \(ref [0-9a-f]{8}\)\. It may have happened\. Do not try it again in any form; tell the user that it is being checked\."$/,
      );
      expect(question).toBe('human: "and now?"');
    });

    it("of a call that still runs it hears that, and the next one its result", async () => {
      const letOn = gate();
      let charges = 0;
      const made = scene(async () => {
        charges++;
        await letOn.opened;
        return "charged";
      });
      const client = new AbortController();
      const run = rejection(build(made).invoke(said("charge"), { ...configOf("first"), signal: client.signal }));
      await until(() => charges > 0);
      client.abort();
      await run;
      expect((await heard(build, made))[2]).toMatch(/still running .* Do not start another one/);
      letOn.open();
      expect(charges).toBe(1);
    });

    it("of a call that was never made it hears that it was not", async () => {
      let charges = 0;
      const made = scene(() => `charged ${++charges}`);
      await build(made).invoke(said("charge"), { ...configOf("first"), interruptBefore: ["tools"] });
      expect((await heard(build, made))[2]).toBe(
        'tool: "\\"charge\\" was not executed: the run that called it was over first."',
      );
      expect(charges).toBe(0);
    });

    it("each of several calls is answered once", async () => {
      const made = scene(() => Promise.reject(new Error("lost")), {
        model: wishing({ name: "charge", args: { n: 0 } }, { name: "look", args: { n: 1 } }),
        others: { look: () => "seen" },
      });
      await rejection(build(made).invoke(said("both"), configOf("first")));
      const answers = (await heard(build, made)).slice(2, -1);
      expect(answers).toHaveLength(2);
      expect(answers[0]).toContain("is unknown");
      expect(answers[1]).toMatch(/seen|has no result/);
    });

    it("of a command it hears the answer that it held", async () => {
      const made = scene(() => new Command({ update: { messages: [] } }));
      await rejection(build(made).invoke(said("charge"), { ...configOf("first"), ...dying }));
      expect((await heard(build, made))[2]).toBe('tool: "\\"charge\\" was done. Do not do it again."');
    });

    it("a run that goes on is given no answers but its own", async () => {
      let charges = 0;
      const made = scene(() => `charged ${++charges}`);
      await rejection(build(made).invoke(said("charge"), { ...configOf("first"), ...dying }));
      const { messages } = await build(made).invoke(said("charge"), configOf("first"));
      expect(messages.map(({ type, content }) => `${type} ${content}`)).toEqual([
        "human charge",
        "ai ",
        "tool charged 1",
        "ai done",
      ]);
    });
  });
}
