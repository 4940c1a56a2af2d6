import type { BaseCheckpointSaver } from "@langchain/langgraph";
import { createTwiceproof, done, memoryStore } from "@twiceproof/core";
import { describeOn } from "@twiceproof/test-servers/vitest";
import { describe, expect, it } from "vitest";
import { doubtResume, guardCheckpointer } from "../src/index.ts";
import { consumerBreaks, fatalSibling, siblingInterrupts } from "./support/duplicates.ts";
import { type Scene, ways } from "./support/graphs.ts";
import { wishing } from "./support/model.ts";
import { memorySaver, postgresSaver, sqliteSaver } from "./support/savers.ts";

const build = ways["createReactAgent with guardTool"] ?? expect.fail();
const human = { messages: [{ role: "user", content: "go" }] };

function suite(makeSaver: () => BaseCheckpointSaver | Promise<BaseCheckpointSaver>): void {
  it.each([
    ["a sibling's interrupt", siblingInterrupts],
    ["a fatal sibling", fatalSibling],
    ["a consumer that leaves", consumerBreaks],
  ])("2: %s does not make the effect happen twice", async (_, run) => {
    const saver = await makeSaver();
    expect(await run((scene) => build({ ...scene, saver }))).toEqual({ charges: 1, lastMessage: "done" });
  });

  it("2: an input that is sent again with its run id goes on from the checkpoint", async () => {
    const saver = await makeSaver();
    const model = wishing({ name: "charge", args: { n: 0 } });
    let dies = true;
    const scene: Scene = {
      tp: createTwiceproof({ store: memoryStore() }),
      saver,
      model,
      charge: () => "charged",
      others: {},
      rules: { waitMs: 0 },
    };
    const config = { configurable: { thread_id: "thread", run_id: "run" } };
    const stopping = {
      ...config,
      // The worker dies between two steps.
      callbacks: [
        {
          raiseError: true,
          awaitHandlers: true,
          handleToolEnd: () => {
            if (dies) throw new Error("the worker died");
          },
        },
      ],
    };
    await expect(build(scene).invoke(human, stopping)).rejects.toThrow("the worker died");
    dies = false;
    for (let time = 0; time < 2; time++) {
      const { messages } = await build(scene).invoke(human, config);
      expect(messages.map(({ content }) => content)).toEqual(["go", "", "charged", "done"]);
    }
    expect(model.given).toHaveLength(2);
  });

  it("a doubt stands in the checkpoint, and a verdict by resume is taken by another worker", async () => {
    const saver = await makeSaver();
    const scene: Scene = {
      tp: createTwiceproof({ store: memoryStore() }),
      saver,
      model: wishing({ name: "charge", args: { n: 0 } }),
      charge: () => Promise.reject(new Error("lost")),
      inDoubt: "stop",
    };
    const config = { configurable: { thread_id: "thread" } };
    const { __interrupt__: interrupts = [] } = await build(scene).invoke(human, config);
    const by = { who: "ana", why: "asked" };
    const { messages } = await build(scene).invoke(doubtResume(interrupts, done(new Map([[1, 2]])), by), config);
    expect(messages.at(-1)?.content).toBe("done");
  });

  it("is still the saver that it was", async () => {
    const saver = await makeSaver();
    const guarded = guardCheckpointer(saver, { tp: createTwiceproof({ store: memoryStore() }) });
    expect(guarded).toBeInstanceOf(saver.constructor as never);
    expect(guarded.constructor).toBe(saver.constructor);
    expect(guarded.serde).toBe(saver.serde);
    expect(await guarded.getTuple({ configurable: { thread_id: "none" } })).toBeUndefined();
    await guarded.deleteThread("none");
  });
}

describe("MemorySaver", () => suite(memorySaver));
describe("SqliteSaver", () => suite(sqliteSaver));
describeOn(["postgres"], "PostgresSaver", (server) => suite(() => postgresSaver(server.url)));
