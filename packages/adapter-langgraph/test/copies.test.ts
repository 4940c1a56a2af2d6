import { realpathSync } from "node:fs";
import { join } from "node:path";
import { tool } from "@langchain/core/tools";
import { interrupt } from "@langchain/langgraph";
import { expect, inject, it } from "vitest";
import { z } from "zod";
import { guardTool } from "../src/index.ts";
import { scene } from "./support/doubts.ts";
import { rejection } from "./support/waiting.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** The folder whose copies of LangGraph and langchain this project runs on; by default the package's own. */
    readonly floor?: string;
  }
}

it("this project's tests and the package run on this project's copies", async () => {
  const folder = inject("floor") ?? join(import.meta.dirname, "..");
  const copy = (name: string): string => realpathSync(join(folder, "node_modules", name));
  const { stack } = (await rejection((async () => interrupt("outside of a graph"))())) as Error;
  expect(stack).toContain(copy("@langchain/langgraph"));
  const plain = tool(() => "done", { name: "a", description: "a", schema: z.object({}) });
  const guarded = guardTool(plain, { tp: scene(() => "").tp, key: () => "a" });
  const invalid = (await rejection(guarded.invoke("no object" as never))) as Error;
  expect(invalid.stack).toContain(copy("@langchain/core"));
});
