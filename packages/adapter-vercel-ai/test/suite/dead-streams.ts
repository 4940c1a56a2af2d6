import { withRun } from "@twiceproof/adapter-vercel-ai";
import { refused } from "@twiceproof/core";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import type { ChatMessage, ToolPart } from "../../src/sdk.ts";
import { modelOf } from "../support/model.ts";
import { errors, post, type RouteOptions, respond, user } from "../support/route.ts";
import type { Sdk } from "../support/sdk.ts";
import { gate, rejection, type StoreName, settled, until, world } from "../support/world.ts";

export function deadStreams(sdk: Sdk, store: StoreName): void {
  const inputSchema = z.object({ cents: z.number() });
  const ask = [{ call: "a", tool: "charge", input: { cents: 5 } }];

  function slow() {
    const { opened, open } = gate();
    let charges = 0;
    const charge = sdk.tool({
      description: "Charges the card",
      inputSchema,
      execute: async () => {
        charges++;
        await opened;
        return { receipt: charges };
      },
    });
    return { charge, open, charges: () => charges };
  }

  const toolParts = (messages: readonly ChatMessage[]): ToolPart[] =>
    messages.flatMap(({ parts }) => parts as ToolPart[]).filter(({ type }) => type.startsWith("tool-"));

  /** What a page, or a handler that saved in the middle, has when the stream died under a call. */
  const halfway = (message: ChatMessage, input: object = { cents: 5 }): ChatMessage[] => [
    message,
    {
      id: "answer-1",
      role: "assistant",
      parts: [{ type: "tool-charge", toolCallId: "a", state: "input-available", input }],
    },
  ];

  describe("a stream that dies while a tool works", () => {
    it("aborted: the call is recorded, the chat stays busy until then, and the next turn is told", async () => {
      const { tp, other } = world(store);
      const { charge, open, charges } = slow();
      const stop = new AbortController();
      let saved: readonly ChatMessage[] = [];
      let over = false;
      const response = await respond(sdk, [user("m1", "pay")], {
        tp,
        tools: { charge },
        model: modelOf(sdk, ask, [{ text: "." }]),
        signal: stop.signal,
        waitUntil: (done) => done.then(() => (over = true)),
        save: (all) => {
          saved = all;
        },
      });
      await until(() => charges() === 1);
      stop.abort();
      const streamed = response.text();
      await settled(other);
      const next: RouteOptions = { tp: other, tools: { charge }, model: modelOf(sdk, [{ text: "It was." }]) };
      expect((await post(sdk, [user("m2", "?")], { ...next, waitUntil: () => undefined })).status).toBe(409);
      expect(over).toBe(false);
      open();
      await until(() => over);
      // The floor of 5 does not heed an abort while a tool works.
      const heeded = sdk.title !== "ai 5.0.11";
      expect((await streamed).includes('"abort"')).toBe(heeded);
      expect(toolParts(saved).map(({ state }) => state)).toEqual([heeded ? "input-available" : "output-available"]);
      const answer = await post(sdk, [...saved, user("m2", "was it charged?")], next);
      expect(errors(answer)).toEqual([]);
      expect(JSON.stringify(next.model.prompts)).toContain('"receipt":1');
      expect(toolParts(answer.saved)).toMatchObject([{ state: "output-available", output: { receipt: 1 } }]);
      expect(charges()).toBe(1);
    });

    it("because the page was closed: the run goes on to its end and saves", async () => {
      const { tp } = world(store);
      const { charge, open, charges } = slow();
      const model = modelOf(sdk, ask, [{ text: "Charged." }]);
      let saved: readonly ChatMessage[] = [];
      let over = false;
      const response = await respond(sdk, [user("m1", "pay")], {
        tp,
        tools: { charge },
        model,
        waitUntil: (done) => done.then(() => (over = true)),
        save: (all) => {
          saved = all;
        },
      });
      await until(() => charges() === 1);
      await response.body?.cancel();
      open();
      await until(() => over);
      expect(model.prompts).toHaveLength(2);
      expect(toolParts(saved)).toMatchObject([{ state: "output-available", output: { receipt: 1 } }]);
      expect(JSON.stringify(saved)).toContain("Charged.");
    });

    it("7: after the tool ran, in the middle of the model's answer: sent again, it is not charged again", async () => {
      const { tp, other, executions } = world(store);
      const charge = sdk.tool({ description: "d", inputSchema, execute: async () => "charged" });
      const broken = modelOf(sdk, ask, [{ text: "Char" }, { broken: new Error("connection reset") }]);
      const dead = post(sdk, [user("m1", "pay")], { tp, tools: { charge }, model: broken });
      expect(await rejection(dead)).toMatchObject({ message: "connection reset" });
      expect(executions("charge")).toBe(1);
      const model = modelOf(sdk, [{ call: "b", tool: "charge", input: { cents: 5 } }], [{ text: "." }]);
      const again = await post(sdk, [user("m1", "pay")], { tp: other, tools: { charge }, model, lock: false });
      expect(errors(again)).toEqual([]);
      expect(JSON.stringify(model.prompts[1])).toContain("charged");
      expect(executions("charge")).toBe(1);
    });
  });

  describe("a saved chat is mended from the record", () => {
    const first = user("m1", "pay");
    const next = user("m2", "was it charged?");

    /** A first request comes to its end, and what was saved tells of its beginning only. */
    async function afterwards(
      execute: () => Promise<unknown>,
      options: Partial<RouteOptions> = {},
      history?: ChatMessage[],
    ) {
      const { tp, executions } = world(store);
      const tools = { charge: sdk.tool({ description: "d", inputSchema, execute }) };
      await post(sdk, [first], { tp, tools, model: modelOf(sdk, ask, [{ text: "." }]), ...options });
      const model = modelOf(sdk, [{ text: "." }]);
      const answer = await post(sdk, history ?? [...halfway(first), next], { tp, tools, model, ...options });
      expect(executions("charge")).toBe(1);
      return { model, answer, part: toolParts(answer.saved)[0] };
    }
    const charged = async () => ({ receipt: 1 });
    const mended = { state: "output-available", output: { receipt: 1 } };

    it("a result, of a call in an earlier turn", async () => {
      const { model, answer, part } = await afterwards(charged);
      expect(part).toMatchObject(mended);
      expect(errors(answer)).toEqual([]);
      expect(JSON.stringify(model.prompts)).toContain('"receipt":1');
    });

    it("a result, of a call in this turn", async () => {
      expect((await afterwards(charged, {}, halfway(first))).part).toMatchObject(mended);
    });

    it("a doubt, as the fixed text", async () => {
      const { model, part } = await afterwards(async () => {
        throw new Error("socket hang up");
      });
      const errorText = expect.stringMatching(/^EFFECT_IN_DOUBT: The outcome of "charge" is unknown/);
      expect(part).toMatchObject({ state: "output-error", errorText });
      expect(JSON.stringify(model.prompts)).toContain("Do not try it again in any form");
    });

    it("a refusal, as its text", async () => {
      const { part } = await afterwards(async () => {
        throw refused("the card is stolen");
      });
      expect(part).toMatchObject({
        state: "output-error",
        errorText: expect.stringMatching(/^EFFECT_REFUSED: .*stolen/),
      });
    });

    it.each([
      ["its call id", { identity: "call" as const }],
      ["its key", { key: () => "order:1" }],
    ])("of a tool that is told apart by %s", async (_how, charge) => {
      expect((await afterwards(charged, { rules: { charge } })).part).toMatchObject(mended);
    });

    it("in this turn of a run with a turn of its own", async () => {
      expect((await afterwards(charged, { turn: "job-7" }, halfway(first))).part).toMatchObject(mended);
    });

    it("and what is not on record stays as it is, as do the messages that were given", async () => {
      const { tp } = world(store);
      const tools = { charge: sdk.tool({ description: "d", inputSchema, execute: charged }) };
      await post(sdk, [first], { tp, tools, model: modelOf(sdk, ask, [{ text: "." }]) });
      const ofProvider = halfway(first);
      Object.assign(ofProvider[1]?.parts[0] as object, { providerExecuted: true });
      const unknown = [
        [...halfway(first, { cents: 6 }), next],
        [...halfway(user("m1", "edited")), next],
        halfway(next),
        ofProvider,
      ];
      const known = [...halfway(first), next];
      const before = structuredClone(known);
      await withRun(tp, { thread: "chat-1" }, async (run) => {
        run.tools(tools, { charge: "effect" });
        for (const messages of unknown) expect(await run.repair(messages)).toEqual(messages);
        expect(toolParts(await run.repair(known))).toMatchObject([mended]);
        return new Response();
      });
      expect(known).toEqual(before);
    });

    it.each(["input", "call"] as const)(
      'before the tools are named: one of identity "%s"; one that has a key is then refused',
      async (identity) => {
        const { tp } = world(store);
        const tools = { charge: sdk.tool({ description: "d", inputSchema, execute: charged }) };
        const rules = { charge: { identity } };
        await post(sdk, [first], { tp, tools, rules, model: modelOf(sdk, ask, [{ text: "." }]) });
        await withRun(tp, { thread: "chat-1" }, async (run) => {
          expect(toolParts(await run.repair([...halfway(first), next]))).toMatchObject([mended]);
          const late = () => run.tools(tools, { charge: "effect" }, { charge: { key: () => "order:1" } });
          expect(late).toThrow(/"charge".*call `run\.tools` first/);
          return new Response();
        });
      },
    );
  });
}
