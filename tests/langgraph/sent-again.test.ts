import { randomUUID } from "node:crypto";
import { done } from "@twiceproof/core";
import { describe, expect } from "vitest";
import { it, operator } from "./support/place.ts";
import type { Dispatch, Outcome } from "./support/protocol.ts";

/**
 * The tool takes longer than the platform's patience, and the run is sent to a second worker while the first one works:
 * https://github.com/langchain-ai/langgraph/issues/7417.
 */
const ways = [
  { on: "sqlite", how: "as its input" },
  { on: "sqlite", how: "to be resumed" },
  { on: "sqlite", how: "to be resumed by another run" },
  { on: "postgres", how: "as its input" },
  { on: "postgres", how: "to be resumed" },
] as const;

function dispatches(how: (typeof ways)[number]["how"]): { readonly first: Dispatch; readonly again: Dispatch } {
  const first = { thread: `rivers-${randomUUID()}`, runId: randomUUID(), sent: "input" } as const;
  switch (how) {
    case "as its input":
      return { first, again: first };
    case "to be resumed":
      return { first, again: { ...first, sent: "nothing" } };
    case "to be resumed by another run":
      return { first, again: { ...first, sent: "nothing", runId: randomUUID() } };
  }
}

/** The end of a run: one question, one tool call, one result, one answer, which names who did the work. */
function finished({ thread }: Dispatch, pid: number): Outcome {
  return { answer: `${thread}, by ${pid}`, messages: ["human", "ai", "tool", "ai"] };
}

describe.for(ways)("sent again $how, $on", ({ on, how }) => {
  it("without the guard, the tool works twice", async ({ openPlace }) => {
    const here = await openPlace(on);
    const { first, again } = dispatches(how);
    const slow = await here.start({ guarded: false, stops: true });
    const second = await here.start({ guarded: false });
    void slow.dispatch(first);
    await slow.at("in the tool");
    await second.dispatch(again);
    expect(here.acts()).toEqual([slow.pid, second.pid]);
  });

  it("1: while the first worker works, the second is refused; sent again it finishes with the first one's result", async ({
    openPlace,
  }) => {
    const here = await openPlace(on);
    const { first, again } = dispatches(how);
    const [slow, second] = await Promise.all([
      here.start({ guarded: true, stops: true }),
      here.start({ guarded: true }),
    ]);
    const firstOutcome = slow.dispatch(first);
    await slow.at("in the tool");
    expect(await second.dispatch(again)).toMatchObject({
      code: again.runId === first.runId ? "RUN_IN_PROGRESS" : "THREAD_BUSY",
    });
    slow.goOn();
    expect(await firstOutcome).toEqual(finished(first, slow.pid));
    expect(await second.dispatch(again)).toEqual(finished(first, slow.pid));
    expect(here.acts()).toEqual([slow.pid]);
  });

  it("2: the first worker is killed in the tool: in doubt, until a verdict lets the run finish", async ({
    openPlace,
  }) => {
    const here = await openPlace(on);
    const { first, again } = dispatches(how);
    const [slow, second] = await Promise.all([
      here.start({ guarded: true, stops: true }),
      here.start({ guarded: true }),
    ]);
    void slow.dispatch(first);
    await slow.at("in the tool");
    await slow.kill();
    await here.lapsed(first.thread);
    expect(await second.dispatch(again)).toMatchObject({ code: "EFFECT_IN_DOUBT" });

    const found = `${first.thread}, by ${slow.pid}`;
    expect(await here.tp.doubts.resolve(await here.doubt(), done(found), operator)).toBe("applied");
    expect(await second.dispatch(again)).toEqual(finished(first, slow.pid));
    expect(here.acts()).toEqual([slow.pid]);
  });

  it("9: the first worker stands still past its lease: its late result is what the second finishes with", async ({
    openPlace,
  }) => {
    const here = await openPlace(on);
    const { first, again } = dispatches(how);
    const [slow, second] = await Promise.all([
      here.start({ guarded: true, stops: true }),
      here.start({ guarded: true }),
    ]);
    const firstOutcome = slow.dispatch(first);
    await slow.at("in the tool");
    slow.freeze();
    await here.lapsed(first.thread);
    expect(await second.dispatch(again)).toMatchObject({ code: "EFFECT_IN_DOUBT" });
    slow.thaw();
    slow.goOn();
    expect(await firstOutcome).toMatchObject({ code: "RUN_LOST" });
    expect(await second.dispatch(again)).toEqual(finished(first, slow.pid));
    expect(here.acts()).toEqual([slow.pid]);
  });

  it("9: the first worker's event loop is blocked past its lease: its late result is what the second finishes with", async ({
    openPlace,
  }) => {
    const here = await openPlace(on);
    const { first, again } = dispatches(how);
    const flag = here.flag();
    const [slow, second] = await Promise.all([
      here.start({ guarded: true, blockUntil: flag.path }),
      here.start({ guarded: true }),
    ]);
    const firstOutcome = slow.dispatch(first);
    await slow.at("in the tool");
    await here.lapsed(first.thread);
    expect(await second.dispatch(again)).toMatchObject({ code: "EFFECT_IN_DOUBT" });
    flag.raise();
    expect(await firstOutcome).toMatchObject({ code: "RUN_LOST" });
    expect(await second.dispatch(again)).toEqual(finished(first, slow.pid));
    expect(here.acts()).toEqual([slow.pid]);
  });
});
