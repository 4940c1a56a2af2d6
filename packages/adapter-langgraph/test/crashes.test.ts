import { MemorySaver } from "@langchain/langgraph";
import { done } from "@twiceproof/core";
import { type CrashPoint, testTwiceproof } from "@twiceproof/core/testing";
import { describe, expect, it, onTestFinished } from "vitest";
import { type Scene, ways } from "./support/graphs.ts";
import { wishing } from "./support/model.ts";
import { rejection } from "./support/waiting.ts";

const human = { messages: [{ role: "user", content: "go" }] };
const config = { configurable: { thread_id: "thread", run_id: "run" } };

/** Where the worker dies, how often the effect happened by then, and whether anybody can know. */
const points: readonly (readonly [CrashPoint, number, "known" | "unknown"])[] = [
  ["before-claim", 0, "known"],
  ["after-claim", 0, "unknown"],
  ["before-record", 1, "unknown"],
  ["after-record", 1, "known"],
];

/** As a queue does: the input again, or as an operator: what the checkpoint has. */
const again = [
  ["resumed", null],
  ["sent again", human],
] as const;

describe.each(Object.entries(ways))("a worker that dies in %s", (_, build) => {
  it.each(points.flatMap((point) => again.map(([how, input]) => [...point, how, input] as const)))(
    "2: %s: %i times by then, %s, and %s",
    async (point, before, outcome, _how, input) => {
      const kit = testTwiceproof();
      onTestFinished(() => kit.close());
      let count = 0;
      const scene: Scene = {
        tp: kit.tp,
        model: wishing({ name: "charge", args: { n: 0 } }),
        saver: new MemorySaver(),
        charge: () => `charged ${++count}`,
      };
      await kit.crash(point, () => build(scene).invoke(human, config));
      expect(count).toBe(before);
      kit.lapse();
      const next = build({ ...scene, model: wishing({ name: "charge", args: { n: 0 } }) });
      if (outcome === "unknown") {
        const { code, id = "" } = await rejection(next.invoke(input, config));
        expect(code).toBe("EFFECT_IN_DOUBT");
        const doubt = (await kit.tp.doubts.get(id)) ?? expect.fail("no doubt");
        await kit.tp.doubts.resolve(doubt, done("by hand"), { who: "ana", why: "asked" });
      }
      const { messages } = await next.invoke(input, config);
      expect(messages.at(-2)?.content).toBe(outcome === "unknown" ? "by hand" : "charged 1");
      expect(count).toBe(outcome === "unknown" ? before : 1);
    },
  );
});
