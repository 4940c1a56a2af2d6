import { describe, expect, it } from "vitest";
import { z } from "zod";
import type { ChatMessage } from "../../src/sdk.ts";
import { modelOf } from "../support/model.ts";
import { errors, outputs, post, respond, user } from "../support/route.ts";
import type { Sdk } from "../support/sdk.ts";
import { gate, rejection, type StoreName, settled, until, world } from "../support/world.ts";

export function lines(sdk: Sdk, store: StoreName): void {
  const pay = [user("m1", "pay")];
  const ask = (call: string) => modelOf(sdk, [{ call, tool: "charge", input: {} }], [{ text: "Charged." }]);

  function slow() {
    const { opened, open } = gate();
    let charges = 0;
    const charge = sdk.tool({
      description: "Charges the card",
      inputSchema: z.object({}),
      execute: async () => {
        charges++;
        await opened;
        return { receipt: charges };
      },
    });
    return { charge, open, charges: () => charges };
  }

  describe("a request that waits for the chat", () => {
    it("1: starts when the one before it is drained and saved, and shows the same result", async () => {
      const { tp, other } = world(store);
      const { charge, open, charges } = slow();
      const saving = gate();
      let chat: readonly ChatMessage[] = pay;
      let saves = 0;
      const first = post(sdk, pay, {
        tp,
        tools: { charge },
        model: ask("a"),
        save: async (all) => {
          saves++;
          await saving.opened;
          chat = all;
        },
      });
      await until(() => charges() === 1);
      const model = ask("b");
      const places: number[] = [];
      let loaded: readonly ChatMessage[] = [];
      const second = post(sdk, pay, {
        tp: other,
        tools: { charge },
        model,
        onBusy: "wait",
        onWait: ({ ahead }) => places.push(ahead),
        load: () => {
          loaded = chat;
          return pay;
        },
      });
      await until(() => places.length > 0);
      open();
      await until(() => saves === 1);
      await settled(other);
      expect(loaded).toEqual([]);
      expect(model.prompts).toHaveLength(0);
      saving.open();
      expect(outputs(await first)).toEqual([{ receipt: 1 }]);
      expect(outputs(await second)).toEqual([{ receipt: 1 }]);
      expect(JSON.stringify(loaded)).toContain("Charged.");
      expect(charges()).toBe(1);
    });

    it("leaves the line when its client does, and has asked no model", async () => {
      const { tp, other } = world(store);
      const { charge, open, charges } = slow();
      const first = post(sdk, pay, { tp, tools: { charge }, model: ask("a") });
      await until(() => charges() === 1);
      const model = ask("b");
      const client = new AbortController();
      const { signal } = client;
      const second = rejection(respond(sdk, pay, { tp: other, tools: {}, model, onBusy: "wait", signal }));
      const waiting = async (): Promise<number | undefined> => (await tp.threads.get("chat-1"))?.queueDepth;
      await until(async () => (await waiting()) === 1);
      client.abort(new Error("the page was closed"));
      expect(await second).toMatchObject({ message: "the page was closed" });
      await until(async () => (await waiting()) === 0);
      open();
      expect(outputs(await first)).toEqual([{ receipt: 1 }]);
      await settled(other);
      expect(model.prompts).toHaveLength(0);
    });
  });

  describe("a request that interrupts", () => {
    it("starts when the other's call is recorded and its chat saved; the other's page is told the code", async () => {
      const { tp, executions } = world(store);
      const { charge, open, charges } = slow();
      const stopped = ask("a");
      let saved = pay;
      const first = post(sdk, pay, {
        tp,
        tools: { charge },
        model: stopped,
        save: (all) => {
          saved = [...all];
        },
      });
      await until(() => charges() === 1);
      const model = modelOf(sdk, [{ text: "It was." }]);
      const second = post(sdk, [...pay, user("m2", "?")], {
        tp,
        tools: { charge },
        model,
        onBusy: "interrupt",
        load: () => [...saved, user("m2", "was it charged?")],
      });
      await until(async () => (await tp.threads.get("chat-1"))?.state === "stopping");
      expect(model.prompts).toHaveLength(0);
      open();
      expect(errors(await first).at(-1)).toMatch(/^RUN_CANCELLED: /);
      expect(errors(await second)).toEqual([]);
      expect(JSON.stringify(model.prompts)).toContain('"receipt":1');
      expect(stopped.prompts).toHaveLength(1);
      expect(executions("charge")).toBe(1);
    });
  });
}
