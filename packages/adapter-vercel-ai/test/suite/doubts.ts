import { type ChatRun, withRun } from "@twiceproof/adapter-vercel-ai";
import { notExecuted, refused, type TwiceproofError } from "@twiceproof/core";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { type Model, modelOf, type Said } from "../support/model.ts";
import { errors, everyEffect, outputs, post, user } from "../support/route.ts";
import type { Generated, Sdk } from "../support/sdk.ts";
import { gate, rejection, type StoreName, until, world } from "../support/world.ts";

const fixed =
  /^The outcome of "charge" is unknown \(ref [0-9a-f]{8}\)\. It may have happened\. Do not try it again in any form;/;

export function doubts(sdk: Sdk, store: StoreName): void {
  /** The card is charged, and the answer is lost. */
  function losing() {
    let charges = 0;
    const charge = sdk.tool({
      description: "Charges the card",
      inputSchema: z.object({ cents: z.number() }),
      execute: async (_input: { cents: number }): Promise<{ receipt: number }> => {
        charges++;
        throw new Error("socket hang up");
      },
    });
    return { tools: { charge }, charges: () => charges };
  }
  const ask = (call: string): Said[] => [{ call, tool: "charge", input: { cents: 5 } }];
  const stubborn = (): Model => modelOf(sdk, ask("a"), ask("b"), ask("c"), [{ text: "Charged!" }]);

  async function generate(run: ChatRun, model: Model, tools: Record<string, object>, loop = true): Promise<Generated> {
    await run.repair([user("m1", "pay")]);
    const stopWhen = sdk.stepCountIs(5);
    return await sdk.generateText({
      model: model.model,
      prompt: "pay",
      tools: run.tools(tools, everyEffect),
      ...(loop ? run.loop({ stopWhen }) : { stopWhen }),
    });
  }

  describe("a call whose outcome is not known", () => {
    it("ends the loop of generateText: the model is not asked again, and throwIfInDoubt tells the handler", async () => {
      const { tp } = world(store);
      const { tools, charges } = losing();
      const model = stubborn();
      const error = await rejection(
        withRun(tp, { thread: "chat-1" }, async (run) => {
          const result = await generate(run, model, tools);
          expect(result.text).toBe("");
          expect(run.doubts()).toEqual([{ tool: "charge", toolCallId: "a", error: expect.any(Error) }]);
          expect(run.doubts()[0]?.error).toMatchObject({
            code: "EFFECT_IN_DOUBT",
            message: expect.stringMatching(fixed),
          });
          expect(() => run.throwIfInDoubt()).toThrow(fixed);
          throw new Error("seen");
        }),
      );
      expect(error).toMatchObject({ message: "seen" });
      expect(model.prompts).toHaveLength(1);
      expect(charges()).toBe(1);
    });

    it("ends the loop of streamText, and the page gets the code and the fixed text", async () => {
      const { tp } = world(store);
      const { tools, charges } = losing();
      const model = stubborn();
      const answer = await post(sdk, [user("m1", "pay")], { tp, tools, model });
      expect(errors(answer)).toEqual([expect.stringMatching(/^EFFECT_IN_DOUBT: The outcome of "charge" is unknown/)]);
      expect(JSON.stringify(answer.chunks)).not.toContain("hang up");
      expect(model.prompts).toHaveLength(1);
      expect(charges()).toBe(1);
    });

    it("2: is not run again when the request is sent again, by another worker", async () => {
      const { tp, other } = world(store);
      const { tools, charges } = losing();
      await post(sdk, [user("m1", "pay")], { tp, tools, model: stubborn() });
      const model = stubborn();
      const again = await post(sdk, [user("m1", "pay")], { tp: other, tools, model });
      expect(errors(again)).toEqual([expect.stringContaining("EFFECT_IN_DOUBT")]);
      expect(model.prompts).toHaveLength(1);
      expect(charges()).toBe(1);
    });

    it.each([
      ["by its input", {}],
      ["by its call id", { identity: "call" }],
      ["by its key", { key: () => "order:1" }],
    ] as const)("is not run again without `loop` either, when it is told apart %s", async (_how, charge) => {
      const { tp } = world(store);
      const { tools, charges } = losing();
      const model = stubborn();
      await post(sdk, [user("m1", "pay")], { tp, tools, model, rules: { charge }, loop: false });
      expect(model.prompts.length).toBeGreaterThanOrEqual(4);
      expect(charges()).toBe(1);
    });

    it("that still runs elsewhere ends the loop as well, after `waitMs`", async () => {
      const { tp, other } = world(store);
      const { opened, open } = gate();
      let started = 0;
      const charge = sdk.tool({
        description: "Charges the card",
        inputSchema: z.object({ cents: z.number() }),
        execute: async () => {
          started++;
          await opened;
          return "charged";
        },
      });
      const options = { tools: { charge }, rules: { charge: { waitMs: 30 } }, lock: false };
      const first = post(sdk, [user("m1", "pay")], { tp, ...options, model: modelOf(sdk, ask("a"), [{ text: "." }]) });
      await until(() => started === 1);
      const model = stubborn();
      const second = await post(sdk, [user("m1", "pay")], { tp: other, ...options, model });
      expect(errors(second)).toEqual([expect.stringMatching(/^EFFECT_RUNNING: "charge" is still running/)]);
      expect(model.prompts).toHaveLength(1);
      open();
      expect(outputs(await first)).toEqual(["charged"]);
      expect(started).toBe(1);
    });
  });

  describe("what is known of a call that did not succeed", () => {
    it("reaches the model as an ordinary error, and the loop goes on", async () => {
      const { tp } = world(store);
      const outcomes = [refused("the card is stolen"), notExecuted("the shop is closed")];
      const charge = sdk.tool({
        description: "Charges the card",
        inputSchema: z.object({ cents: z.number() }),
        execute: async () => {
          throw outcomes.shift();
        },
      });
      const other = (call: string, cents: number): Said[] => [{ call, tool: "charge", input: { cents } }];
      const model = modelOf(sdk, other("a", 1), other("b", 2), [{ text: "I could not." }]);
      const answer = await post(sdk, [user("m1", "pay")], { tp, tools: { charge }, model });
      expect(errors(answer)).toEqual([
        expect.stringMatching(/^EFFECT_REFUSED: "charge" was refused: the card is stolen/),
        expect.stringMatching(/^EFFECT_NOT_EXECUTED: "charge" was not executed: the shop is closed/),
      ]);
      expect(model.prompts).toHaveLength(3);
    });
  });

  describe("the loop", () => {
    it("keeps the conditions and the prepareStep of its user", async () => {
      const { tp } = world(store);
      const prepared: number[] = [];
      const look = sdk.tool({
        description: "Looks",
        inputSchema: z.object({ n: z.number() }),
        execute: async () => "seen",
      });
      const step = (n: number): Said[] => [{ call: `c${n}`, tool: "look", input: { n } }];
      const model = modelOf(sdk, step(1), step(2), step(3), [{ text: "." }]);
      await withRun(tp, { thread: "chat-1", turn: "t" }, async (run) => {
        const result = await sdk.generateText({
          model: model.model,
          prompt: "look",
          tools: run.tools({ look }, { look: "read" }),
          ...run.loop({
            stopWhen: [sdk.stepCountIs(9), ({ steps }) => steps.length === 2],
            prepareStep: ({ stepNumber }) => {
              prepared.push(stepNumber);
              return stepNumber === 1 ? { system: "be quick" } : undefined;
            },
          }),
        });
        expect(result.steps).toHaveLength(2);
        return new Response();
      });
      expect(prepared).toEqual([0, 1]);
      expect(JSON.stringify(model.prompts[0])).not.toContain("be quick");
      expect(JSON.stringify(model.prompts[1])).toContain("be quick");
    });

    it("refuses before the model is asked when a tool needs a turn and there is none", async () => {
      const { tp } = world(store);
      const { tools, charges } = losing();
      const model = stubborn();
      const error = (await rejection(
        withRun(tp, { thread: "chat-1" }, async (run) => {
          await sdk.generateText({
            model: model.model,
            prompt: "pay",
            tools: run.tools(tools, everyEffect),
            ...run.loop({ stopWhen: sdk.stepCountIs(5) }),
          });
          return new Response();
        }),
      )) as TwiceproofError;
      expect(error).toMatchObject({ code: "IDENTITY_MISSING", message: expect.stringContaining('"charge"') });
      expect(model.prompts).toHaveLength(0);
      expect(charges()).toBe(0);
    });
  });
}
