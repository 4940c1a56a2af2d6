import { type ChatRun, mcpKinds, withRun } from "@twiceproof/adapter-vercel-ai";
import { describe, expect, it, onTestFinished } from "vitest";
import { z } from "zod";
import { mcp } from "../support/mcp.ts";
import { modelOf, type Said } from "../support/model.ts";
import { outputs, post, user } from "../support/route.ts";
import type { Sdk } from "../support/sdk.ts";
import { type StoreName, world } from "../support/world.ts";

export function features(sdk: Sdk, store: StoreName): void {
  const ask: Said[] = [{ call: "a", tool: "charge", input: { cents: 5 } }];
  const inputSchema = z.object({ cents: z.number() });

  describe("the SDK's agent", () => {
    it.each(["generate", "stream"] as const)("%s: a guarded tool runs once, and a doubt ends the loop", async (how) => {
      const { tp, executions } = world(store);
      const charge = sdk.tool({
        description: "d",
        inputSchema,
        execute: async ({ cents }: { cents: number }) => {
          if (cents === 6) throw new Error("socket hang up");
          return "charged";
        },
      });
      async function ask(cents: number) {
        const model = modelOf(sdk, [{ call: "a", tool: "charge", input: { cents } }], [{ text: "All done." }]);
        const run = async (run: ChatRun): Promise<Response> => {
          const tools = run.tools({ charge }, { charge: "effect" });
          const { abortSignal, ...loop } = run.loop({ stopWhen: sdk.stepCountIs(5) });
          const agent = new sdk.Agent({ model: model.model, tools, ...loop });
          if (how === "generate") {
            const { text } = await agent.generate({ prompt: "pay", abortSignal });
            return Response.json([text, run.doubts().length]);
          }
          const result = await agent.stream({ prompt: "pay", abortSignal });
          let text = "";
          for await (const part of result.fullStream as AsyncIterable<{ type: string; text?: string }>)
            if (part.type === "text-delta") text += part.text ?? "";
          return Response.json([text, run.doubts().length]);
        };
        const over: Promise<void>[] = [];
        const waitUntil = (done: Promise<void>) => over.push(done);
        const response = await withRun(tp, { thread: "chat-1", turn: "t", waitUntil }, run);
        const said = await response.json();
        await Promise.all(over);
        return { said, asked: model.prompts.length };
      }
      expect(await ask(5)).toEqual({ said: ["All done.", 0], asked: 2 });
      expect(await ask(5)).toEqual({ said: ["All done.", 0], asked: 2 });
      expect(executions("charge")).toBe(1);
      expect(await ask(6)).toEqual({ said: ["", 1], asked: 1 });
      expect(await ask(6)).toEqual({ said: ["", 1], asked: 1 });
      expect(executions("charge")).toBe(2);
    });
  });

  it("dynamicTool: runs once", async () => {
    const { tp, other, executions } = world(store);
    const charge = sdk.dynamicTool({
      description: "d",
      inputSchema: sdk.jsonSchema({ type: "object", properties: { cents: { type: "number" } } }),
      execute: async (input: unknown) => ({ charged: input }),
    });
    for (const worker of [tp, other]) {
      const model = modelOf(sdk, ask, [{ text: "." }]);
      const answer = await post(sdk, [user("m1", "pay")], { tp: worker, tools: { charge }, model });
      expect(outputs(answer)).toEqual([{ charged: { cents: 5 } }]);
    }
    expect(executions("charge")).toBe(1);
  });

  it("the tools of an MCP client: classified by the hints of a trusted server, and called once", async () => {
    const { tp, other } = world(store);
    const { client, calls } = await mcp(sdk);
    onTestFinished(() => client.close());
    const tools = await client.tools();
    const all: Said[] = ["pay", "look", "put"].map((tool) => ({ call: tool, tool, input: {} }));
    const answers = [];
    for (const worker of [tp, other]) {
      const model = modelOf(sdk, all, [{ text: "." }]);
      const kinds = mcpKinds({ trustHints: true });
      answers.push(await post(sdk, [user("m1", "go")], { tp: worker, tools, kinds, model }));
      expect(JSON.stringify(model.prompts[1])).toContain("pay 1");
    }
    expect(answers.map((answer) => outputs(answer).length)).toEqual([3, 3]);
    // The client of 5 does not tell the hints: whatever is not said is an effect.
    expect(calls.toSorted()).toEqual(sdk.major === 5 ? ["look", "pay", "put"] : ["look", "look", "pay", "put"]);
  });

  it("tools that change the output for the model do so in a replay as well", async () => {
    const { tp, other } = world(store);
    const prompts: string[] = [];
    const charge = sdk.tool({
      description: "d",
      inputSchema,
      execute: async () => ({ receipt: "r-1", secret: "not for the model" }),
      toModelOutput: (given: unknown) => {
        const output = (sdk.major === 5 ? given : (given as { output: unknown }).output) as { receipt: string };
        return { type: "text", value: `receipt ${output.receipt}` };
      },
    });
    for (const worker of [tp, other]) {
      const model = modelOf(sdk, ask, [{ text: "." }]);
      await post(sdk, [user("m1", "pay")], { tp: worker, tools: { charge }, model });
      prompts.push(JSON.stringify(model.prompts[1]));
    }
    expect(prompts[0]).toContain("receipt r-1");
    expect(prompts[0]).not.toContain("not for the model");
    expect(prompts[1]).toBe(prompts[0]);
  });
}
