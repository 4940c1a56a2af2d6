import { describe, expect, it } from "vitest";
import { z } from "zod";
import type { ChatMessage, ToolPart } from "../../src/sdk.ts";
import { modelOf } from "../support/model.ts";
import { errors, outputs, post, user } from "../support/route.ts";
import type { Sdk } from "../support/sdk.ts";
import { gate, type StoreName, until, world } from "../support/world.ts";

/** What the page does when somebody presses Approve. */
function approve(messages: readonly ChatMessage[], approved = true): ChatMessage[] {
  return messages.map((message) => ({
    ...message,
    parts: message.parts.map((part) => {
      const { state, approval } = part as ToolPart;
      return state === "approval-requested"
        ? { ...(part as ToolPart), state: "approval-responded", approval: { ...approval, approved } }
        : part;
    }),
  }));
}

export function approvals(sdk: Sdk, store: StoreName): void {
  if (sdk.major === 5) return;

  const ask = [{ call: "call-1", tool: "charge", input: { cents: 5 } }];
  function shop(execute: () => Promise<unknown>) {
    const charge = sdk.tool({
      description: "Charges the card",
      inputSchema: z.object({ cents: z.number() }),
      needsApproval: true,
      execute,
    });
    return { charge };
  }
  const secrets = sdk.signs ? [undefined, "a secret of the server"] : [undefined];

  describe.each(secrets)("an approved call, approvals signed with %s", (secret) => {
    const more = { experimental_toolApprovalSecret: secret };

    const ways = [{ lock: false }, { onBusy: "wait" }] as const;
    it.each(ways)(
      "1: is made once when two tabs approve it at once, and a stale one later: all show one result: %j",
      async (way) => {
        const { tp, other } = world(store);
        const { opened, open } = gate();
        let charges = 0;
        const tools = shop(async () => {
          charges++;
          await opened;
          return { receipt: charges };
        });
        const asked = await post(sdk, [user("m1", "pay")], { tp, tools, more, model: modelOf(sdk, ask) });
        expect(charges).toBe(0);
        const approved = approve(asked.saved);
        expect(JSON.stringify(approved)).toContain("approval-responded");
        const tabs = [tp, other].map((server) => {
          const model = modelOf(sdk, [{ text: "Charged." }]);
          return { model, answer: post(sdk, approved, { tp: server, tools, more, model, ...way }) };
        });
        await until(() => charges === 1);
        open();
        const [one, two] = await Promise.all(tabs.map(({ answer }) => answer));
        const stale = { model: modelOf(sdk, [{ text: "Charged." }]) };
        const third = await post(sdk, approved, { tp: other, tools, more, model: stale.model });
        for (const answer of [one, two, third]) {
          if (answer === undefined) throw new Error("there is no answer");
          expect(errors(answer)).toEqual([]);
          expect(outputs(answer)).toEqual([{ receipt: 1 }]);
        }
        expect(charges).toBe(1);
        const [first, ...rest] = [...tabs, stale].map(({ model }) => JSON.stringify(model.prompts));
        expect(rest).toEqual([first, first]);
      },
    );

    it("that ends in doubt: the model is not asked, and the page gets the code", async () => {
      const { tp, other } = world(store);
      let charges = 0;
      const tools = shop(async () => {
        charges++;
        throw new Error("socket hang up");
      });
      const asked = await post(sdk, [user("m1", "pay")], { tp, tools, more, model: modelOf(sdk, ask) });
      for (const server of [tp, other]) {
        const model = modelOf(sdk, ask, [{ text: "Charged!" }]);
        const answer = await post(sdk, approve(asked.saved), { tp: server, tools, more, model });
        const told = errors(answer);
        expect(told.length).toBeGreaterThan(0);
        for (const text of told) expect(text).toMatch(/^EFFECT_IN_DOUBT: The outcome of "charge" is unknown/);
        expect(model.prompts).toHaveLength(0);
      }
      expect(charges).toBe(1);
    });

    it("that was denied is not made", async () => {
      const { tp, executions } = world(store);
      const tools = shop(async () => "charged");
      const asked = await post(sdk, [user("m1", "pay")], { tp, tools, more, model: modelOf(sdk, ask) });
      const model = modelOf(sdk, [{ text: "As you like." }]);
      await post(sdk, approve(asked.saved, false), { tp, tools, more, model });
      expect(model.prompts).toHaveLength(1);
      expect(executions("charge")).toBe(0);
    });

    it("whose stream died is mended in the next turn", async () => {
      const { tp } = world(store);
      const tools = shop(async () => ({ receipt: 1 }));
      const asked = await post(sdk, [user("m1", "pay")], { tp, tools, more, model: modelOf(sdk, ask) });
      const approved = approve(asked.saved);
      await post(sdk, approved, { tp, tools, more, model: modelOf(sdk, [{ text: "." }]) });
      // What that answer brought was not saved; and the user goes on.
      const model = modelOf(sdk, [{ text: "It was." }]);
      const next = await post(sdk, [...approved, user("m2", "was it charged?")], { tp, tools, more, model });
      expect(errors(next)).toEqual([]);
      expect(JSON.stringify(model.prompts)).toContain('"receipt":1');
    });
  });
}
