import { guardTools, turnOf } from "@twiceproof/adapter-vercel-ai";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { modelOf } from "../support/model.ts";
import { errors, outputs, post, user } from "../support/route.ts";
import type { Sdk } from "../support/sdk.ts";
import { type StoreName, world } from "../support/world.ts";

export function identity(sdk: Sdk, store: StoreName): void {
  function charging() {
    let charges = 0;
    const charge = sdk.tool({
      description: "Charges the card",
      inputSchema: z.object({ cents: z.number(), orderId: z.string().optional() }),
      execute: async ({ cents }: { cents: number }) => ({ receipt: ++charges, cents }),
    });
    return { tools: { charge }, charges: () => charges };
  }
  const asks = (call: string, cents: number, more: object = {}) =>
    modelOf(sdk, [{ call, tool: "charge", input: { cents, ...more } }], [{ text: "Done." }]);

  describe("which call is the same call", () => {
    it("7: a request that is sent again, with a new call id: charged once, the same result", async () => {
      const { tp, other } = world(store);
      const { tools, charges } = charging();
      const first = await post(sdk, [user("m1", "pay")], { tp, tools, model: asks("a", 5) });
      const again = await post(sdk, [user("m1", "pay")], { tp: other, tools, model: asks("b", 5) });
      expect(outputs(first)).toEqual([{ receipt: 1, cents: 5 }]);
      expect(outputs(again)).toEqual(outputs(first));
      expect(charges()).toBe(1);
    });

    it("7: an answer that is regenerated: charged once", async () => {
      const { tp } = world(store);
      const { tools, charges } = charging();
      const first = await post(sdk, [user("m1", "pay")], { tp, tools, model: asks("a", 5) });
      const history = first.saved.filter(({ role }) => role === "user");
      expect(first.saved.length).toBeGreaterThan(history.length);
      const again = await post(sdk, history, { tp, tools, model: asks("b", 5) });
      expect(outputs(again)).toEqual(outputs(first));
      expect(charges()).toBe(1);
    });

    it("7: a message as one tab wrote it, and as another one loaded it: charged once", async () => {
      const { tp } = world(store);
      const { tools, charges } = charging();
      const text = { type: "text", text: "pay" };
      const ways: object[][] = [
        [text],
        [{ ...text, state: "done" }],
        [{ ...text, providerMetadata: { openai: { id: "1" } } }],
        [{ type: "step-start" }, text, { type: "data-seen", data: { at: 1 } }],
      ];
      for (const parts of ways)
        await post(sdk, [{ id: "m1", role: "user", parts }], { tp, tools, model: asks("a", 5) });
      expect(charges()).toBe(1);
    });

    it("the turn is the message's id, its texts, and the names and types of its files, and nothing else", () => {
      const text = { type: "text", text: "pay" };
      const file = { type: "file", mediaType: "image/png", filename: "bill.png", url: "data:image/png;base64,AA==" };
      const of = (...parts: unknown[]) => turnOf([{ id: "m1", role: "user", parts }]);
      expect(of(text, { ...file, url: "https://files/1.png?sig=A" })).toBe(of(text, file));
      expect(of(null, text, { ...file, providerMetadata: {} }, {}, "text")).toBe(of(text, file));
      const others = [
        of(text),
        of(text, file),
        of(text, { ...file, filename: "other.png" }),
        of(text, { ...file, mediaType: "image/jpeg" }),
        of({ ...text, text: "pay!" }),
        of(text, text),
        of({ ...text, text: "paypay" }),
        turnOf([{ id: "m2", role: "user", parts: [text] }]),
      ];
      expect(new Set(others).size).toBe(others.length);
    });

    it("a message that was edited, under the id it had: charged again", async () => {
      const { tp } = world(store);
      const { tools, charges } = charging();
      await post(sdk, [user("m1", "pay")], { tp, tools, model: asks("a", 5) });
      await post(sdk, [user("m1", "pay, please")], { tp, tools, model: asks("a", 5) });
      expect(charges()).toBe(2);
    });

    it("call ids that come again in the next turn: each call gets its own result", async () => {
      const { tp } = world(store);
      const { tools, charges } = charging();
      const first = await post(sdk, [user("m1", "5")], { tp, tools, model: asks("charge:0", 5) });
      const next = [...first.saved, user("m2", "7")];
      const second = await post(sdk, next, { tp, tools, model: asks("charge:0", 7) });
      const third = await post(sdk, [...next, user("m3", "7")], { tp, tools, model: asks("charge:0", 7) });
      expect([first, second, third].flatMap(outputs)).toEqual([
        { receipt: 1, cents: 5 },
        { receipt: 2, cents: 7 },
        { receipt: 3, cents: 7 },
      ]);
      expect(charges()).toBe(3);
    });

    it("the same message in another chat: charged again", async () => {
      const { tp } = world(store);
      const { tools, charges } = charging();
      await post(sdk, [user("m1", "pay")], { tp, tools, model: asks("a", 5), thread: "chat-1" });
      await post(sdk, [user("m1", "pay")], { tp, tools, model: asks("a", 5), thread: "chat-2" });
      expect(charges()).toBe(2);
    });

    it("1: two equal calls in one step: one call, and both get its result", async () => {
      const { tp } = world(store);
      const { tools, charges } = charging();
      const twice = ["a", "b"].map((call) => ({ call, tool: "charge", input: { cents: 5 } }));
      const answer = await post(sdk, [user("m1", "pay")], { tp, tools, model: modelOf(sdk, twice, [{ text: "." }]) });
      expect(outputs(answer)).toEqual([1, 1].map((receipt) => ({ receipt, cents: 5 })));
      expect(charges()).toBe(1);
    });

    it('two equal calls in one step, with `identity: "call"`: two calls; the same call id again: none', async () => {
      const { tp } = world(store);
      const { tools, charges } = charging();
      const rules = { charge: { identity: "call" } } as const;
      const twice = ["a", "b"].map((call) => ({ call, tool: "charge", input: { cents: 5 } }));
      for (let times = 0; times < 2; times++)
        await post(sdk, [user("m1", "pay")], { tp, tools, rules, model: modelOf(sdk, twice, [{ text: "." }]) });
      expect(charges()).toBe(2);
    });

    it("a business key holds across turns and chats, and refuses another input", async () => {
      const { tp } = world(store);
      const { tools, charges } = charging();
      const rules = { charge: { key: (input: unknown) => `order:${(input as { orderId: string }).orderId}` } };
      const order = { orderId: "o-1" };
      const first = await post(sdk, [user("m1", "pay")], { tp, tools, rules, model: asks("a", 5, order) });
      const later = { tp, tools, rules, thread: "chat-2" };
      const same = await post(sdk, [user("m9", "did you?")], { ...later, model: asks("b", 5, order) });
      const changed = await post(sdk, [user("m10", "more")], { ...later, model: asks("c", 6, order) });
      expect(outputs(same)).toEqual(outputs(first));
      expect(errors(changed)).toEqual([expect.stringMatching(/^EFFECT_KEY_REUSED: .*"charge"/)]);
      expect(charges()).toBe(1);
    });

    it("without a run: scope and turn tell calls apart, and `turnOf` gives the turn of a run", async () => {
      const { tp, other } = world(store);
      const { tools, charges } = charging();
      type Executable = { execute: (input: object, options: object) => Promise<unknown> };
      const at = (scope: string, turn: string) => {
        const kinds = { charge: "effect" } as const;
        return (guardTools(tools, { kinds, tp: other, scope, turn }).charge as unknown as Executable).execute;
      };
      const turn = turnOf([user("m1", "pay")]);
      await post(sdk, [user("m1", "pay")], { tp, tools, model: asks("a", 5) });
      const receipts: unknown[] = [];
      for (const [scope, of] of [
        ["chat-1", turn],
        ["chat-1", "another"],
        ["chat-2", turn],
        ["chat-2", turn],
      ] as const)
        receipts.push(await at(scope, of)({ cents: 5 }, { toolCallId: "b" }));
      expect(receipts).toEqual([1, 2, 3, 3].map((receipt) => ({ receipt, cents: 5 })));
      expect(charges()).toBe(3);
    });
  });
}
