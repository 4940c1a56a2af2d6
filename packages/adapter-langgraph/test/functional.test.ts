import { entrypoint, task } from "@langchain/langgraph";
import { describe, expect, it } from "vitest";
import { guardGraph } from "../src/index.ts";
import { charging, config, here, saver, settle } from "./support/nested.ts";
import { rejection } from "./support/waiting.ts";

describe("2: the functional API", () => {
  it("a tool within a task is not run again by a resume, nor by the input sent again", async () => {
    const at = here();
    let dies = true;
    const build = () =>
      guardGraph(
        entrypoint({ name: "work", checkpointer: saver(at) }, async (n: number) => {
          const charge = task("charge", async () => await charging(at).invoke({ n }));
          const answer = await charge();
          if (dies) throw new Error("the worker died");
          return answer;
        }),
        { tp: at.tp },
      );
    const run = { configurable: { thread_id: "thread", run_id: "run" } };
    await rejection(build().invoke(7, run));
    await rejection(build().invoke(7, run));
    dies = false;
    expect(await build().invoke(7, run)).toBe("charged 1");
    expect(at.bodies).toEqual([7]);
  });

  it("a doubt in it is told, and settled", async () => {
    const at = Object.assign(here(), { lost: true });
    const build = () =>
      guardGraph(
        entrypoint({ name: "work", checkpointer: saver(at) }, async (n: number) => await charging(at).invoke({ n })),
        { tp: at.tp },
      );
    const { code, id } = await rejection(build().invoke(7, config));
    expect(code).toBe("EFFECT_IN_DOUBT");
    await settle(at, id);
    expect(await build().invoke(null as never, config)).toBe("by hand");
  });
});
