import { describe, expect, it } from "vitest";
import { z } from "zod";
import { modelOf } from "../support/model.ts";
import { outputs, post, user } from "../support/route.ts";
import type { Sdk } from "../support/sdk.ts";
import { type StoreName, world } from "../support/world.ts";

export function reads(sdk: Sdk, store: StoreName): void {
  it("a polling tool of kind read gets a fresh answer each time, in one loop and in the next request", async () => {
    const { tp, events } = world(store);
    let polls = 0;
    const status = sdk.tool({
      description: "Polls",
      inputSchema: z.object({ job: z.string() }),
      execute: async () => `poll ${++polls}`,
    });
    const step = [{ call: "p", tool: "status", input: { job: "j" } }];
    const options = { tp, tools: { status }, kinds: { status: "read" } as const };
    const first = await post(sdk, [user("m1", "?")], { ...options, model: modelOf(sdk, step, step, [{ text: "." }]) });
    const again = await post(sdk, [user("m1", "?")], { ...options, model: modelOf(sdk, step, [{ text: "." }]) });
    expect([first, again].flatMap(outputs)).toEqual(["poll 1", "poll 2", "poll 3"]);
    expect(events).toEqual([]);
  });

  describe("a set of tools", () => {
    it("leaves unguarded what the provider or the page executes, and what only reads", async () => {
      const { tp } = world(store);
      const page = sdk.tool({ description: "Asks on the page", inputSchema: z.object({}) });
      const provider = { type: "provider", id: "x.search", name: "search", args: {} };
      const look = sdk.tool({ description: "Looks", inputSchema: z.object({}), execute: async () => 1 });
      const answer = await post(sdk, [user("m1", "?")], {
        tp,
        tools: { page, look },
        kinds: { page: "effect", look: "read" },
        model: modelOf(sdk, [{ text: "." }]),
        onRun: (run) => {
          const kinds = { page: "effect", provider: "effect", look: "read" } as const;
          const tools = run.tools({ page, provider, look }, kinds);
          expect(tools.page).toBe(page);
          expect(tools.provider).toBe(provider);
          expect(tools.look).toBe(look);
        },
      });
      expect(answer.status).toBe(200);
    });
  });
}
