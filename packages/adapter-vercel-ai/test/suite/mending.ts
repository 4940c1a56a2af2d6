import { type ChatRun, effectTool, withRun } from "@twiceproof/adapter-vercel-ai";
import { defineEffect, done, notDone } from "@twiceproof/core";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import type { ChatMessage, ToolPart } from "../../src/sdk.ts";
import { modelOf } from "../support/model.ts";
import { errors, post, type RouteOptions, user } from "../support/route.ts";
import type { Sdk } from "../support/sdk.ts";
import { gate, rejection, type StoreName, until, type World, world } from "../support/world.ts";

type Part = Record<string, unknown>;

/** What `repair` may make of chats that are stale, forged, old or odd. */
export function mending(sdk: Sdk, store: StoreName): void {
  const inputSchema = z.object({ orderId: z.string(), cents: z.number() });
  const input = { orderId: "7", cents: 5 };
  const first = user("m1", "pay");
  const next = user("m2", "and now?");
  const open = { type: "tool-charge", toolCallId: "a", state: "input-available", input };
  const answer = (...parts: unknown[]): ChatMessage => ({ id: "answer-1", role: "assistant", parts });
  const shop = (execute: () => Promise<unknown> = async () => ({ receipt: 1 })) => ({
    charge: sdk.tool({ description: "Charges the card", inputSchema, execute }),
  });
  const ask = (call = "a") => [{ call, tool: "charge", input }];
  const pay = (w: World, options: Partial<RouteOptions> = {}) =>
    post(sdk, [first], { tp: w.tp, tools: shop(), model: modelOf(sdk, ask(), [{ text: "." }]), ...options });
  const lost = async (): Promise<never> => {
    throw new Error("socket hang up");
  };

  /** What `repair` makes of a chat, in a run with the tools. */
  async function repaired(
    { tp }: World,
    messages: readonly ChatMessage[],
    use: (run: ChatRun) => unknown = (run) => run.tools(shop(), { charge: "effect" }),
    thread = "chat-1",
  ): Promise<ChatMessage[]> {
    let mended: ChatMessage[] = [];
    await withRun(tp, { thread, lock: false }, async (run) => {
      use(run);
      mended = await run.repair(messages);
      return new Response();
    });
    return mended;
  }
  const partOf = (messages: readonly ChatMessage[]): Part => messages.flatMap(({ parts }) => parts as Part[])[1] ?? {};

  describe("a part that somebody made up", () => {
    it.each([input, { ...input, cents: 6 }])(
      "tells nothing of a call of another chat, whatever its key: %j",
      async (forged) => {
        const w = world(store);
        const rules = { charge: { key: (it: unknown) => `order:${(it as typeof input).orderId}` } };
        await pay(w, { rules, thread: "ana/1" });
        const keyed = (run: ChatRun) => run.tools(shop(), { charge: "effect" }, rules);
        const chat = [first, answer({ ...open, input: forged }), next];
        expect(await repaired(w, chat, keyed, "mallory/1")).toEqual(chat);
        const state = forged === input ? "output-available" : "output-error";
        expect(partOf(await repaired(w, chat, keyed, "ana/1"))).toMatchObject({ state });
      },
    );
  });

  describe("a call of this turn whose outcome is not known", () => {
    it.each(["in doubt", "running"])("%s: ends the loop before the model is asked", async (what) => {
      const w = world(store);
      const { opened, open: end } = gate();
      const before = pay(w, { tools: shop(what === "running" ? () => opened : lost), lock: false });
      if (what === "running") await until(() => w.executions("charge") === 1);
      else await before;
      const code = what === "running" ? "EFFECT_RUNNING" : "EFFECT_IN_DOUBT";
      for (const part of [open, { ...open, state: "output-error", errorText: `${code}: it is not known` }]) {
        const model = modelOf(sdk, [{ call: "b", tool: "charge", input: { ...input, cents: 6 } }], [{ text: "Done!" }]);
        const again = await post(sdk, [first, answer(part)], { tp: w.other, tools: shop(), model, lock: false });
        expect(errors(again).at(-1)).toMatch(new RegExp(`^${code}: .*"charge"`));
        expect(model.prompts).toHaveLength(0);
      }
      end();
      await before;
      expect(w.executions("charge")).toBe(1);
    });

    it("stands in `doubts` once, however often the chat is repaired; one of an earlier turn does not", async () => {
      const w = world(store);
      await pay(w, { tools: shop(lost) });
      let known: unknown;
      await withRun(w.tp, { thread: "chat-1" }, async (run) => {
        run.tools(shop(), { charge: "effect" });
        await run.repair([first, answer(open), next]);
        const earlier = run.doubts().length;
        await run.repair([first, answer(open)]);
        await run.repair([first, answer(open)]);
        known = [earlier, run.doubts()];
        expect(() => run.throwIfInDoubt()).toThrow(/The outcome of "charge" is unknown/);
        return new Response();
      });
      expect(known).toEqual([0, [{ tool: "charge", toolCallId: "a", error: expect.any(Error) }]]);
    });
  });

  describe("how a doubt ended", () => {
    it("is told to the chat that was saved in doubt", async () => {
      const w = world(store);
      const doubtful = await pay(w, { tools: shop(lost) });
      const chat = [...doubtful.saved, next];
      expect(JSON.stringify(chat)).toContain("EFFECT_IN_DOUBT: ");
      const { doubts } = w.tp;
      const [doubt] = (await doubts.list()).doubts;
      if (doubt === undefined) throw new Error("there is no doubt");
      await doubts.resolve(doubt, done({ receipt: 9 }), { who: "ana", why: "the bank has it" });
      const model = modelOf(sdk, [{ text: "It was." }]);
      const told = await post(sdk, chat, { tp: w.tp, tools: shop(), model });
      expect(errors(told)).toEqual([]);
      expect(JSON.stringify(model.prompts)).toContain('"receipt":9');
      const part = told.saved.flatMap(({ parts }) => parts as Part[]).find(({ type }) => type === "tool-charge");
      expect(part).toMatchObject({ state: "output-available", output: { receipt: 9 } });
      expect(part).not.toHaveProperty("errorText");
    });

    it("is told when it did not happen; and another error, or one that is not on record, stays", async () => {
      const w = world(store);
      await pay(w, { tools: shop(lost) });
      const [doubt] = (await w.tp.doubts.list()).doubts;
      if (doubt === undefined) throw new Error("there is no doubt");
      const failed = { ...open, state: "output-error", errorText: "EFFECT_IN_DOUBT: it is not known" };
      const others = [
        [first, answer({ ...failed, errorText: "out of stock" }), next],
        [first, answer({ ...failed, input: { ...input, cents: 6 } }), next],
        [first, answer({ ...failed, errorText: undefined }), next],
      ];
      for (const chat of others) expect(await repaired(w, chat)).toEqual(chat);
      await w.tp.doubts.resolve(doubt, notDone(), { who: "ana", why: "the bank has nothing" });
      expect(partOf(await repaired(w, [first, answer(failed), next]))).toMatchObject({
        state: "output-error",
        errorText: expect.stringMatching(/^EFFECT_NOT_EXECUTED: /),
      });
    });
  });

  describe("a stale tab that denies what was approved and made", () => {
    const approval = { id: "p", approved: false };
    const denied = { ...open, state: "approval-responded", approval };

    it.each([denied, { ...denied, state: "output-denied" }])("is told the result: %j", async (part) => {
      const w = world(store);
      await pay(w);
      for (const later of [[], [next]])
        expect(partOf(await repaired(w, [first, answer(part), ...later]))).toEqual({
          ...part,
          state: "output-available",
          output: { receipt: 1 },
          approval: { id: "p", approved: true },
        });
    });

    it("a denial of what was not made stays", async () => {
      const w = world(store);
      expect(await repaired(w, [first, answer(denied)])).toEqual([first, answer(denied)]);
    });

    it("and the model hears of it as of any result", async () => {
      if (sdk.major === 5) return;
      const w = world(store);
      await pay(w);
      const model = modelOf(sdk, [{ text: "It was charged." }]);
      const told = await post(sdk, [first, answer({ type: "step-start" }, denied)], { tp: w.tp, tools: shop(), model });
      expect(errors(told)).toEqual([]);
      expect(JSON.stringify(model.prompts)).toContain('"receipt":1');
      expect(JSON.stringify(model.prompts)).not.toContain("denied");
      expect(w.executions("charge")).toBe(1);
    });
  });

  describe("an old or odd part leaves the chat usable, and itself as it is", () => {
    const odd: Record<string, unknown> = {
      "is null": null,
      "is a text": "tool-charge",
      "has no type": {},
      "has a type that is none": { ...open, type: 7 },
      "has no call id": { ...open, toolCallId: undefined },
      "has a call id that is none": { ...open, toolCallId: 7 },
      "has no input": { ...open, input: undefined },
      "has an input of an older schema": { ...open, input: { order: 7 } },
      "has an input without a text of its own": { ...open, input: { f: () => 1 } },
      "has a name that is none": { ...open, type: `tool-${"x".repeat(5_000)}` },
      "has a name of two lines": { ...open, type: "dynamic-tool", toolName: "a\nb" },
      "has no name": { ...open, type: "dynamic-tool" },
      "has a state that is none": { ...open, state: "gone" },
    };
    const charge = defineEffect({ name: "charge", input: inputSchema, run: async () => ({ receipt: 1 }) });
    const ways: Record<string, (run: ChatRun) => unknown> = {
      "by its input": (run) => run.tools(shop(), { charge: "effect" }),
      "by its call id": (run) => run.tools(shop(), { charge: "effect" }, { charge: { identity: "call" } }),
      "by its key": (run) =>
        run.tools(shop(), { charge: "effect" }, { charge: { key: (it) => (it as typeof input).orderId.trim() } }),
      "of an effect": (run) => run.tools({ charge: effectTool(charge, { run }) }, { charge: "effect" }),
      "that is not named yet": () => undefined,
    };

    it.each(Object.entries(ways))("of a tool that is told apart %s", async (_how, use) => {
      const w = world(store);
      for (const [what, part] of Object.entries(odd)) {
        const chat = [first, answer(part, { type: "text", text: "hi" }), next];
        expect(await repaired(w, chat, use), what).toEqual(chat);
      }
    });

    it("an odd message as well, and an earlier one of the user without an id", async () => {
      const w = world(store);
      await pay(w);
      const chat = [
        null,
        {},
        { role: "user", parts: [] },
        answer(open),
        { role: "assistant" },
        first,
        answer(open),
        next,
      ];
      const mended = await repaired(w, chat as ChatMessage[]);
      expect(mended.slice(0, 6)).toEqual(chat.slice(0, 6));
      expect(mended[6]?.parts[0]).toMatchObject({ state: "output-available" });
    });

    it("but what is no list of messages is refused", async () => {
      const { tp } = world(store);
      for (const messages of [undefined, null, "hi", { messages: [] }, Promise.resolve([])])
        await withRun(tp, { thread: "chat-1" }, async (run) => {
          const refused = run.repair(messages as unknown as ChatMessage[]);
          expect(await rejection(refused)).toMatchObject({
            code: "INVALID_ARGUMENT",
            message: expect.stringContaining("repair"),
          });
          return new Response(null, { status: 204 });
        });
    });

    it("and of ten thousand open parts, the last thousand are looked up", async () => {
      const w = world(store);
      await pay(w);
      const parts = Array.from({ length: 10_000 }, (_, index) => ({ ...open, input: { ...input, cents: -index } }));
      const chat = [first, answer(open, ...parts), answer(open), next];
      const mended = await repaired(w, chat);
      expect(mended[1]).toEqual(chat[1]);
      expect(mended[2]?.parts[0]).toMatchObject({ state: "output-available" });
    });
  });

  describe("a tool of an effect that stands under another name", () => {
    const effect = defineEffect({ name: "pay", input: inputSchema, run: async () => ({ receipt: 1 }) });
    const name = (run: ChatRun) => run.tools({ charge: effectTool(effect, { run }) }, { charge: "effect" });

    it("is found by its effect's, or says that it must be named before the repair", async () => {
      const w = world(store);
      const chat = [first, answer(open), next];
      await withRun(w.tp, { thread: "chat-1" }, async (run) => {
        const { charge } = name(run);
        await run.repair([first]);
        await charge.execute(input, { toolCallId: "a" });
        return new Response(null, { status: 204 });
      });
      const mended = (await repaired(w, chat, name)).flatMap(({ parts }) => parts as ToolPart[]);
      expect(mended[1]).toMatchObject({ state: "output-available", output: { receipt: 1 } });
      await withRun(w.tp, { thread: "chat-1" }, async (run) => {
        await run.repair(chat);
        expect(() => name(run)).toThrow(/"charge".*call `run\.tools` first/);
        return new Response(null, { status: 204 });
      });
    });
  });
}
