import { appendFileSync, existsSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { effectTool } from "@twiceproof/adapter-langgraph";
import { createTwiceproof, defineEffect, type Store } from "@twiceproof/core";
import { sqliteStore } from "@twiceproof/store-sqlite";
import { createAgent, tool } from "langchain";
import { z } from "zod";
import { curiousModel } from "./model.ts";
import { metFile, readLines, workFile } from "./served-files.ts";

/** What a user of the platform writes: graphs without a checkpointer, which is the platform's. Only the tools are ours. */
const folder = process.env.TWICEPROOF_TEST_FOLDER ?? "";
const tp = createTwiceproof({ store: noticing(sqliteStore(join(folder, "claims.db"))) });

const schema = z.object({ topic: z.string() });
const description = "Looks a topic up. Takes long, and costs money.";

/** Its work is one line in a file; then it takes until a file with the name of the topic exists. */
async function look({ topic }: z.infer<typeof schema>): Promise<string> {
  appendFileSync(workFile(folder), `${topic}\n`, { flag: "a" });
  const count = readLines(workFile(folder)).filter((line) => line === topic).length;
  while (!existsSync(join(folder, topic))) await pause(20);
  return `${topic}, look ${count}`;
}

const research = defineEffect({ name: "research", input: schema, run: look, leaseMs: 1_000 });
const keyedResearch = defineEffect({ ...research, key: ({ topic }) => `research:${topic}` });

export const plain = createAgent({
  model: curiousModel(),
  tools: [tool(look, { name: "research", description, schema })],
});
export const guarded = createAgent({ model: curiousModel(), tools: [effectTool(research, { tp, description })] });
export const keyed = createAgent({ model: curiousModel(), tools: [effectTool(keyedResearch, { tp, description })] });

/** Says of which thread a claim met somebody else's. */
function noticing(store: Store): Store {
  return {
    ...store,
    async claim(requests) {
      const answers = await store.claim(requests);
      for (const [index, { answer }] of answers.entries())
        if (answer === "taken") appendFileSync(metFile(folder), `${requests[index]?.scope}\n`, { flag: "a" });
      return answers;
    },
  };
}
