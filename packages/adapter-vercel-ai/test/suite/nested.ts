import { type ChatRun, withChat, withRun } from "@twiceproof/adapter-vercel-ai";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { modelOf } from "../support/model.ts";
import { errors, outputs, post, user } from "../support/route.ts";
import type { Sdk } from "../support/sdk.ts";
import { gate, rejection, type StoreName, until, world } from "../support/world.ts";

export function nested(sdk: Sdk, store: StoreName): void {
  const inputSchema = z.object({ cents: z.number() });
  const charging = (execute: () => Promise<unknown>) => ({
    charge: sdk.tool({ description: "Charges the card", inputSchema, execute }),
  });
  const lost = async (): Promise<never> => {
    throw new Error("socket hang up");
  };
  const ask = [{ call: "i", tool: "charge", input: { cents: 1 } }];

  async function generate(run: ChatRun, execute: () => Promise<unknown>): Promise<string> {
    const { text } = await sdk.generateText({
      model: modelOf(sdk, ask, [{ text: "Charged." }]).model,
      prompt: "pay",
      tools: run.tools(charging(execute), { charge: "effect" }),
      ...run.loop({ stopWhen: sdk.stepCountIs(5) }),
    });
    return text;
  }

  describe("withChat: a run that gives a value", () => {
    it("gives it, and with a `runId` gives it again", async () => {
      const { tp, other, executions } = world(store);
      const options = { thread: "jobs/1", turn: "job-1", runId: "job-1" };
      const answer = { text: "Charged." };
      for (const worker of [tp, other]) {
        const work = async (run: ChatRun) => ({ text: await generate(run, async () => "receipt") });
        expect(await withChat(worker, options, work)).toEqual(answer);
        expect(await tp.threads.get("jobs/1")).toBe(null);
      }
      expect(executions("charge")).toBe(1);
    });

    it("2: rejects with a doubt, also when its body returned as if nothing was wrong, and again the next time", async () => {
      const { tp, other, executions } = world(store);
      for (const worker of [tp, other]) {
        const work = withChat(worker, { thread: "jobs/1", turn: "job-1", runId: "job-1" }, (run) =>
          generate(run, lost),
        );
        expect(await rejection(work)).toMatchObject({ code: "EFFECT_IN_DOUBT" });
        expect(await tp.threads.get("jobs/1")).toBe(null);
      }
      expect(executions("charge")).toBe(1);
    });

    it("rejects where the chat is busy, and with what its body threw", async () => {
      const { tp, other } = world(store);
      const { opened, open } = gate();
      const first = withChat(tp, { thread: "jobs/1" }, () => opened);
      const busy = withChat(other, { thread: "jobs/1", onBusy: "wait", maxWaitMs: 1 }, () => "done");
      expect(await rejection(busy)).toMatchObject({ code: "THREAD_WAIT_TIMEOUT" });
      open();
      await first;
      const failing = withChat(tp, { thread: "jobs/1" }, () => {
        throw new Error("no such job");
      });
      expect(await rejection(failing)).toMatchObject({ message: "no such job" });
    });

    it("refuses an option or a body that is none", async () => {
      const { tp } = world(store);
      const refused = { code: "INVALID_ARGUMENT" };
      const options = { thread: "t", waitUntil: () => undefined };
      expect(await rejection(withChat(tp, options, () => 1))).toMatchObject(refused);
      expect(await rejection(withChat(tp, { thread: "t" }, undefined as unknown as () => 1))).toMatchObject(refused);
    });
  });

  describe("19: an agent inside of a tool whose call is in doubt leaves that tool in doubt", () => {
    type Worker = ReturnType<typeof world>["tp"];
    const place = { thread: "agent/1", turn: "t" };
    const busy = "withRun, whose chat is busy";
    const agents: Record<string, (tp: Worker) => Promise<unknown>> = {
      withChat: (tp) => withChat(tp, place, (run) => generate(run, lost)),
      "withRun, whose handler throws": async (tp) => {
        const response = await withRun(tp, place, async (run) => {
          const text = await generate(run, lost);
          run.throwIfInDoubt();
          return new Response(text);
        });
        return await response.text();
      },
      "withRun, whose handler forgets it": async (tp) => {
        const response = await withRun(tp, place, async (run) => new Response(await generate(run, lost)));
        return await response.text();
      },
      "withRun, whose handler gives no body": async (tp) => {
        const response = await withRun(tp, place, async (run) => {
          await generate(run, lost);
          return new Response(null, { status: 204 });
        });
        return response.status;
      },
      "withRun, whose response streams": async (tp) => {
        const response = await withRun(tp, place, (run) =>
          sdk
            .streamText({
              model: modelOf(sdk, ask, [{ text: "Charged." }]).model,
              prompt: "pay",
              tools: run.tools(charging(lost), { charge: "effect" }),
              onError: () => undefined,
              ...run.loop({ stopWhen: sdk.stepCountIs(5) }),
            })
            .toUIMessageStreamResponse({ ...run.stream }),
        );
        return await response.text();
      },
      [busy]: async (tp) => {
        const response = await withRun(tp, place, () => new Response("done"));
        return await response.text();
      },
    };

    it.each(Object.entries(agents))("%s", async (how, agent) => {
      const { tp, other, executions } = world(store);
      const { opened, open } = gate();
      const held = how === busy ? other.withRun(place, () => opened) : undefined;
      await until(async () => held === undefined || (await tp.threads.get(place.thread)) !== null);
      const tools = {
        agent: sdk.tool({ description: "Asks the agent", inputSchema: z.object({}), execute: () => agent(tp) }),
      };
      const asks = [{ call: "o", tool: "agent", input: {} }];
      const model = modelOf(sdk, asks, asks, [{ text: "All is well." }]);
      const answer = await post(sdk, [user("m1", "pay")], { tp, tools, model });
      expect(outputs(answer)).toEqual([]);
      expect(errors(answer)).toEqual([expect.stringMatching(/^EFFECT_IN_DOUBT: The outcome of "agent"/)]);
      expect(model.prompts).toHaveLength(1);
      expect(executions("agent")).toBe(1);
      open();
      await held;
    });
  });
}
