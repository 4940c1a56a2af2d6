import { tool } from "@langchain/core/tools";
import { MemorySaver } from "@langchain/langgraph";
import { createTwiceproof, done, memoryStore, type Twiceproof } from "@twiceproof/core";
import { expect } from "vitest";
import { z } from "zod";
import { guardCheckpointer, guardGraph, guardTool, type ToolRules } from "../../src/index.ts";
import type { Runnable } from "./graphs.ts";
import { rejection } from "./waiting.ts";

export const schema = z.object({ n: z.number() });
export const human = { messages: [{ role: "user", content: "go" }] };
export const config = { configurable: { thread_id: "thread" } };

export interface Here {
  readonly tp: Twiceproof;
  readonly saver: MemorySaver;
  readonly bodies: unknown[];
  lost: boolean;
}

export function here(): Here {
  return { tp: createTwiceproof({ store: memoryStore() }), saver: new MemorySaver(), bodies: [], lost: false };
}

export function charging(at: Here, rules: ToolRules = {}) {
  const charge = tool(
    ({ n }: { n: number }) => {
      at.bodies.push(n);
      if (at.lost) throw new Error("lost");
      return `charged ${at.bodies.length}`;
    },
    { name: "charge", description: "charges", schema },
  );
  return guardTool(charge, { tp: at.tp, ...(rules as object) });
}

export function whole(at: Here, graph: object): Runnable {
  return guardGraph(graph, { tp: at.tp }) as Runnable;
}

export function saver(at: Here) {
  return guardCheckpointer(at.saver, { tp: at.tp });
}

export async function settle(at: Here, id = ""): Promise<void> {
  const doubt = (await at.tp.doubts.get(id)) ?? expect.fail("no doubt");
  await at.tp.doubts.resolve(doubt, done("by hand"), { who: "ana", why: "asked" });
}

/** A graph within a graph whose tool is lost, told at the boundary, settled, and goes on. */
export async function losesAndGoesOn(at: Here, build: () => Runnable): Promise<string> {
  at.lost = true;
  const error = await rejection(build().invoke(human, config));
  expect(error.code).toBe("EFFECT_IN_DOUBT");
  expect(await rejection(build().invoke(null, config))).toMatchObject({ code: "EFFECT_IN_DOUBT", id: error.id });
  await settle(at, error.id);
  const { messages } = await build().invoke(null, config);
  expect(at.bodies).toHaveLength(1);
  return JSON.stringify(messages);
}
