import { isDeepStrictEqual } from "node:util";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { modelOf } from "../support/model.ts";
import { errors, outputs, post, user } from "../support/route.ts";
import type { Sdk } from "../support/sdk.ts";
import { type StoreName, world } from "../support/world.ts";

const results: readonly (readonly [string, () => unknown])[] = [
  ["an object", () => ({ b: 1, a: [true, null, "x"], nested: { when: new Date(0), missing: undefined } })],
  ["a text", () => "done"],
  ["nothing", () => undefined],
  ["null", () => null],
  ["a number", () => 0],
  ["a Date", () => new Date(0)],
  ["a URL", () => new URL("https://example.com/receipt?n=1")],
  ["a Map in an object", () => ({ lines: new Map([["o-1", 5]]) })],
  ["bytes", () => new Uint8Array([1, 2, 3])],
];

export function replay(sdk: Sdk, store: StoreName): void {
  const ask = { call: "a", tool: "work", input: {} };

  describe("7: a replay gives the model what the first run gave it, byte for byte", () => {
    it.each(results)("%s", async (_what, result) => {
      const { tp, other, executions } = world(store);
      const work = sdk.tool({ description: "d", inputSchema: z.object({}), execute: async () => result() });
      async function run(kind: "effect" | "read", worker = tp) {
        const model = modelOf(sdk, [ask], [{ text: "." }]);
        const answer = await post(sdk, [user("m1", "go")], {
          tp: worker,
          tools: { work },
          kinds: { work: kind },
          model,
        });
        return { told: outputs(answer), failed: errors(answer), prompt: model.prompts[1] };
      }
      const [plain, first, again] = [await run("read"), await run("effect"), await run("effect", other)];
      // The floor of 7 refuses results that are not JSON, guarded or not.
      expect([first.failed, again.failed]).toEqual([plain.failed, plain.failed]);
      expect([first.told, again.told]).toEqual([plain.told, plain.told]);
      for (const { prompt } of [first, again]) expect(JSON.stringify(prompt)).toBe(JSON.stringify(plain.prompt));
      expect(isDeepStrictEqual(again.prompt, first.prompt)).toBe(true);
      expect(executions("work")).toBe(1);
    });

    it("bytes that `toModelOutput` makes an image of", async () => {
      const { tp, other, executions } = world(store);
      const seen: unknown[] = [];
      const draw = sdk.tool({
        description: "Draws",
        inputSchema: z.object({}),
        execute: async () => ({ png: Buffer.from([137, 80, 78, 71]) }),
        toModelOutput: (given: unknown): object => {
          const { png } = (sdk.major === 5 ? given : (given as { output: unknown }).output) as { png: Buffer };
          seen.push(png);
          const data = png.toString("base64");
          const older = sdk.major === 5 ? "media" : "image-data";
          const file = { type: "file", data: { type: "data", data } };
          return {
            type: "content",
            value: [{ mediaType: "image/png", ...(sdk.major === 7 ? file : { type: older, data }) }],
          };
        },
      });
      const prompts: string[] = [];
      for (const worker of [tp, other]) {
        const model = modelOf(sdk, [{ ...ask, tool: "draw" }], [{ text: "." }]);
        await post(sdk, [user("m1", "go")], { tp: worker, tools: { draw }, model });
        prompts.push(JSON.stringify(model.prompts[1]));
      }
      expect(prompts[0]).toContain(Buffer.from([137, 80, 78, 71]).toString("base64"));
      expect(prompts[1]).toBe(prompts[0]);
      expect(seen.length).toBeGreaterThanOrEqual(2);
      for (const png of seen) expect(png).toEqual(Buffer.from([137, 80, 78, 71]));
      expect(executions("draw")).toBe(1);
    });

    it.each<[string, { readonly store?: "fact" }, () => unknown]>([
      ["an instance of a class", {}, () => new (class Receipt {})()],
      ["a result that is not to be kept", { store: "fact" }, () => "x"],
    ])("but %s is not recorded: it is told as done, and not done again", async (_what, work, result) => {
      const { tp, other, executions } = world(store);
      const tool = sdk.tool({ description: "d", inputSchema: z.object({}), execute: async () => result() });
      const options = { tools: { work: tool }, rules: { work } };
      const ask = () => modelOf(sdk, [{ call: "a", tool: "work", input: {} }], [{ text: "." }]);
      const first = await post(sdk, [user("m1", "go")], { tp, ...options, model: ask() });
      expect(outputs(first)).toEqual([JSON.parse(JSON.stringify(result()))]);
      const again = await post(sdk, [user("m1", "go")], { tp: other, ...options, model: ask() });
      expect(errors(again)).toEqual([expect.stringMatching(/^EFFECT_RESULT_UNAVAILABLE: "work" was done already/)]);
      expect(executions("work")).toBe(1);
    });
  });
}
