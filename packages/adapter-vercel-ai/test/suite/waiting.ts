import { guardTool, withChat } from "@twiceproof/adapter-vercel-ai";
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

    type Executable = { execute: (input: object, options: object) => Promise<unknown> };

    it("stops waiting when its own signal aborts, is told that the call still runs, and the call goes on", async () => {
      const { tp, other } = world(store);
      const { charge, open, started } = slow();
      const at = (worker: typeof tp, kind: "effect" | "idempotent") =>
        guardTool("charge", charge, { tp: worker, kind, scope: "s", turn: "t" }) as unknown as Executable;
      const first = at(tp, "effect").execute({}, {});
      await until(() => started() === 1);
      for (const kind of ["effect", "idempotent"] as const) {
        const caller = new AbortController();
        const second = rejection(at(other, kind).execute({}, { abortSignal: caller.signal }));
        caller.abort(new Error("gone"));
        expect(await second).toMatchObject({
          code: "EFFECT_RUNNING",
          message: expect.stringMatching(/^"charge" is still running/),
        });
      }
      open();
      expect(await first).toEqual({ receipt: 1 });
      expect(started()).toBe(1);
    });

    it("whose signal has aborted before it could begin says so: nothing was executed", async () => {
      const { tp, executions } = world(store);
      const { charge } = slow();
      const guarded = guardTool("charge", charge, { tp, scope: "s", turn: "t" }) as unknown as Executable;
      const gone = AbortSignal.abort(new Error("gone"));
      expect(await rejection(guarded.execute({}, { abortSignal: gone }))).toMatchObject({ message: "gone" });
      expect(executions("charge")).toBe(0);
    });

    it("2: and runs out of its own time: the loop ends, and the model is not told that it failed", async () => {
      const { tp, other } = world(store);
      const { charge, open, started } = slow();
      const ask = (call: string) => modelOf(sdk, [{ call, tool: "charge", input: {} }], [{ text: "Again?" }]);
      const first = post(sdk, [user("m1", "pay")], { tp, tools: { charge }, lock: false, model: ask("a") });
      await until(() => started() === 1);
      const model = ask("b");
      const error = await rejection(
        withChat(other, { thread: "chat-1", lock: false }, async (run) => {
          await run.repair([user("m1", "pay")]);
          const guarded = run.tools({ charge }, { charge: "effect" }) as unknown as { charge: Executable };
          const { execute } = guarded.charge;
          const abortSignal = AbortSignal.timeout(20);
          const hasty = (input: object, options: object) => execute(input, { ...options, abortSignal });
          const tools = { charge: { ...guarded.charge, execute: hasty } };
          const loop = run.loop({ stopWhen: sdk.stepCountIs(5) });
          return await sdk.generateText({ model: model.model, prompt: "pay", tools, ...loop });
        }),
      );
      expect(error).toMatchObject({ code: "EFFECT_RUNNING" });
      expect(model.prompts).toHaveLength(1);
      open();
      expect(outputs(await first)).toEqual([{ receipt: 1 }]);
      expect(started()).toBe(1);
    });
  });
}
