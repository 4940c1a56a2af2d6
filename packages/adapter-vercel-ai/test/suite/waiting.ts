import { guardTool } from "@twiceproof/adapter-vercel-ai";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { modelOf } from "../support/model.ts";
import { outputs, post, user } from "../support/route.ts";
import type { Sdk } from "../support/sdk.ts";
import { gate, rejection, type StoreName, until, world } from "../support/world.ts";

export function waiting(sdk: Sdk, store: StoreName): void {
  function slow() {
    const { opened, open } = gate();
    let started = 0;
    const charge = sdk.tool({
      description: "Charges the card",
      inputSchema: z.object({}),
      execute: async () => {
        started++;
        await opened;
        return { receipt: started };
      },
    });
    return { charge, open, started: () => started };
  }

  describe("a second caller of a call that runs", () => {
    it("1: waits for it, on another worker, and gives the same result", async () => {
      const { tp, other } = world(store);
      const { charge, open, started } = slow();
      const ask = () => modelOf(sdk, [{ call: "a", tool: "charge", input: {} }], [{ text: "." }]);
      const options = { tools: { charge }, lock: false };
      const first = post(sdk, [user("m1", "pay")], { tp, ...options, model: ask() });
      await until(() => started() === 1);
      const model = ask();
      const second = post(sdk, [user("m1", "pay")], { tp: other, ...options, model });
      await until(() => model.prompts.length === 1);
      open();
      expect(outputs(await second)).toEqual([{ receipt: 1 }]);
      expect(outputs(await first)).toEqual([{ receipt: 1 }]);
      expect(started()).toBe(1);
    });

    it("stops waiting when its own signal aborts, and the call goes on", async () => {
      const { tp, other } = world(store);
      const { charge, open, started } = slow();
      type Executable = { execute: (input: object, options: object) => Promise<unknown> };
      const at = (worker: typeof tp) =>
        guardTool("charge", charge, { tp: worker, scope: "s", turn: "t" }) as unknown as Executable;
      const first = at(tp).execute({}, {});
      await until(() => started() === 1);
      const caller = new AbortController();
      const second = rejection(at(other).execute({}, { abortSignal: caller.signal }));
      caller.abort(new Error("gone"));
      expect(await second).toMatchObject({ message: "gone" });
      open();
      expect(await first).toEqual({ receipt: 1 });
      expect(started()).toBe(1);
    });
  });
}
