import { tool } from "@langchain/core/tools";
import { createTwiceproof, memoryStore } from "@twiceproof/core";
import { expect, it } from "vitest";
import { z } from "zod";
import { guardTool } from "../src/guard-tool.ts";
import { ways } from "./support/graphs.ts";
import { openCallsSuite } from "./support/open-calls.ts";

openCallsSuite(ways);

it("of a call that another thread made under the same key an earlier run's call is told nothing", async () => {
  const schema = z.object({ n: z.number() });
  const plain = tool(async () => "ana's receipt", { name: "charge", description: "Charges.", schema });
  const tp = createTwiceproof({ store: memoryStore() });
  const charge = guardTool(plain, { tp, key: () => "charge:7" });
  const call = { id: "c1", name: "charge", args: { n: 7 }, type: "tool_call" as const };
  const asked = async (thread_id: string, more: object = {}) =>
    JSON.stringify(await charge.invoke(call, { configurable: { thread_id, ...more } }));
  expect(await asked("ana")).toContain("ana's receipt");
  const recordOnly = { __twiceproof_record_only: true };
  expect(await asked("ana", recordOnly)).toContain("ana's receipt");
  const told = await asked("mallory", recordOnly);
  expect(told).toContain("has no result");
  expect(told).not.toContain("receipt");
});
