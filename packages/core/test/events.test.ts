import { describe, expect, it } from "vitest";
import { done, notExecuted, refused } from "../src/classify.ts";
import type { TwiceproofEvent } from "../src/events.ts";
import { brokenConnection } from "./support/faults.ts";
import { notRun, rejection } from "./support/waiting.ts";
import { type World, world } from "./support/world.ts";

const types = (made: World): string[] => made.events.map(({ type }) => type);
const throwing = (thrown: Error) => () => Promise.reject(thrown);

describe("onEvent", () => {
  it.each<readonly [readonly TwiceproofEvent["type"][], (made: World) => Promise<unknown>]>([
    [
      ["executing", "completed", "replayed"],
      async ({ tp }) => {
        await tp.once("k:1", () => 1);
        await tp.once("k:1", notRun);
      },
    ],
    [["executing", "released"], ({ tp }) => tp.once("k:1", throwing(notExecuted("no")))],
    [["executing", "failed"], ({ tp }) => tp.once("k:1", throwing(refused("no")))],
    [["executing", "in-doubt"], ({ tp }) => tp.once("k:1", throwing(brokenConnection()))],
    [
      ["executing", "reconciled", "replayed"],
      ({ tp }) => tp.once<unknown>("k:1", throwing(brokenConnection()), { reconcile: () => done(1) }),
    ],
    [
      ["released"],
      ({ tp, around }) => {
        const controller = new AbortController();
        around("claim", async (pass) => {
          const answers = await pass();
          controller.abort();
          return answers;
        });
        return tp.once("k:1", notRun, { signal: controller.signal });
      },
    ],
    [[], ({ tp }) => tp.once("k:1", () => 1, { kind: "read" })],
  ])("is told: %j", async (expected, act) => {
    const made = world();
    await act(made).catch(() => undefined);
    expect(types(made)).toEqual(expected);
  });

  it("is told who, where and which, and no key, input or result", async () => {
    const made = world();
    await made.tp.withRun({ thread: "t", runId: "r1", turn: "m1" }, (run) =>
      run.once("pay:k3y-canary", () => ({ result: "canary" }), { input: "canary" }),
    );
    const { id } = await made.record("pay:k3y-canary");
    const about = { name: "pay", id, token: 1, scope: "t", turn: "m1", runId: "r1" };
    expect(made.events).toEqual([
      { type: "executing", ...about },
      { type: "completed", ...about },
    ]);
    expect(JSON.stringify(made.events)).not.toContain("canary");
  });

  it.each<readonly [string, () => unknown]>([
    [
      "throws",
      () => {
        throw new Error("a broken observer");
      },
    ],
    ["rejects", () => Promise.reject(new Error("a broken observer"))],
  ])("that %s changes nothing, and does not end the process", async (_, broken) => {
    const unhandled: unknown[] = [];
    const note = (error: unknown): void => void unhandled.push(error);
    process.on("unhandledRejection", note);
    const { tp } = world({ onEvent: broken as () => void });
    expect(await tp.once("k:1", () => "value")).toBe("value");
    expect(await rejection(tp.once("k:2", throwing(brokenConnection())))).toMatchObject({ code: "EFFECT_IN_DOUBT" });
    await new Promise((resolve) => setImmediate(resolve));
    process.off("unhandledRejection", note);
    expect(unhandled).toEqual([]);
  });
});
