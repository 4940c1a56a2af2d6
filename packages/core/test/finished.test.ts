import { describe, expect, it } from "vitest";
import { doneWithoutResult, notDone, notExecuted, refused } from "../src/classify.ts";
import { lockFingerprint, runFingerprint } from "../src/fingerprint.ts";
import { never } from "./support/faults.ts";
import { hold, lineOf, thread, waiting } from "./support/runs.ts";
import { gate, notRun, rejection, until } from "./support/waiting.ts";
import { problem, world } from "./support/world.ts";

const mine = { thread, runId: "r" } as const;

function ofMemory(requests: readonly { readonly fingerprint: string }[]): boolean {
  return requests.some(({ fingerprint }) => fingerprint === runFingerprint);
}

describe.concurrent("a run that returned", () => {
  it("7: is not run again: the same id gets what it returned, on any worker, as the first caller did", async () => {
    const made = world();
    const value = { at: new Date(0), list: [1, undefined] };
    const first = await made.tp.withRun(mine, () => value);
    expect(first).toEqual(value);
    expect(first).not.toBe(value);
    for (const onBusy of ["reject", "wait", "interrupt"] as const)
      expect(await made.worker().withRun({ ...mine, onBusy }, notRun)).toEqual(value);
    expect(await made.record(thread, "thread")).toMatchObject({ token: 1, state: "released" });
  });

  it("is told from another run, on this thread or another", async () => {
    const { tp } = world();
    await tp.withRun(mine, () => 1);
    expect(await tp.withRun({ ...mine, runId: "s" }, () => 2)).toBe(2);
    expect(await tp.withRun({ ...mine, thread: "u" }, () => 3)).toBe(3);
    // One text that two pairs could make, if they were only put side by side.
    await tp.withRun({ thread: "a", runId: "b\nc" }, () => 4);
    expect(await tp.withRun({ thread: "a\nb", runId: "c" }, () => 5)).toBe(5);
  });

  it("gives its outcome back while another run holds the thread", async () => {
    const made = world();
    await made.tp.withRun(mine, () => "outcome");
    const other = await hold(made.worker());
    expect(await made.tp.withRun(mine, notRun)).toBe("outcome");
    expect(await made.tp.withRun({ ...mine, onBusy: "interrupt" }, notRun)).toBe("outcome");
    expect(other.run.signal.aborted).toBe(false);
    other.end();
    await other.over;
  });

  it.each([
    ["cannot be encoded", () => Symbol("live")],
    ["is over the cap", () => "x".repeat(2_000)],
  ])("whose outcome %s is over all the same", async (_, outcome) => {
    const { tp, worker } = world({ maxResultBytes: 1_000 });
    const value = outcome();
    expect(await tp.withRun(mine, () => value)).toBe(value);
    const error = await problem(worker().withRun({ ...mine, onBusy: "wait" }, notRun));
    expect(error).toMatchObject({ code: "RUN_FINISHED", status: 409 });
  });

  it("is over also when its outcome was dropped later, and new when its row was", async () => {
    const made = world();
    await made.tp.withRun(mine, () => "outcome");
    made.advance(1_000);
    const query = { namespace: "default", olderThanMs: 500, limit: 10 };
    expect(await made.tp.store.prune({ ...query, keepKeys: true })).toBe(1);
    expect(await problem(made.tp.withRun(mine, notRun))).toMatchObject({ code: "RUN_FINISHED" });
    expect(await made.tp.store.prune(query)).toBe(1);
    expect(await made.tp.withRun(mine, () => "again")).toBe("again");
  });

  it("14: is recorded under its fence, and before it gives its thread back", async () => {
    const made = world();
    const states: string[] = [];
    made.around("settle", async (pass) => {
      states.push((await made.record(thread, "thread")).state);
      return await pass();
    });
    let fence: unknown;
    await made.tp.withRun(mine, (run) => {
      ({ fence } = run);
    });
    expect(states).toEqual(["claimed", "claimed"]);
    const requests = made
      .asked("claim")
      .flatMap(([all]) => all)
      .filter((each) => ofMemory([each]));
    expect(requests).toMatchObject([{ kind: "effect", name: "run", scope: thread, runId: "r", fence }]);
  });

  it("tells no effect's observer of itself", async () => {
    const { tp, events } = world();
    await tp.withRun(mine, () => 1);
    expect(events).toEqual([]);
  });

  it("without an id, or with `remember: false`, is not remembered", async () => {
    const { tp, asked } = world();
    let ran = 0;
    for (const options of [
      { thread },
      { ...mine, remember: false },
      { ...mine, remember: false },
      { ...mine, lock: false },
    ])
      await tp.withRun(options, () => ran++);
    expect(ran).toBe(4);
    expect(asked("get")).toHaveLength(0);
    expect(asked("claim").every(([all]) => all.every(({ fingerprint }) => fingerprint === lockFingerprint))).toBe(true);
  });

  it("without an id is remembered when asked to be, by the id it was given", async () => {
    const { tp } = world();
    const runId = await tp.withRun({ thread, remember: true }, (run) => run.runId);
    expect(await tp.withRun({ thread, runId }, notRun)).toBe(runId);
  });
});

describe.concurrent("a run that did not return", () => {
  it("may be made again: it threw", async () => {
    const { tp } = world();
    const thrown = new RangeError("mine");
    expect(await rejection(tp.withRun(mine, () => Promise.reject(thrown)))).toBe(thrown);
    expect(await tp.withRun(mine, () => "second time")).toBe("second time");
    expect(await tp.withRun(mine, notRun)).toBe("second time");
  });

  it("14: may be made again: it had lost its thread, and nothing is remembered of it", async () => {
    const made = world();
    const error = await problem(
      made.tp.withRun(mine, async () => {
        made.advance(30_001);
        await made.elsewhere(() => made.worker().withRun({ thread, runId: "other" }, () => undefined));
        return "canary";
      }),
    );
    expect(error).toMatchObject({ code: "RUN_LOST", value: "canary" });
    expect(await made.tp.withRun(mine, () => "second time")).toBe("second time");
  });

  it("17: and whose outcome could not be recorded counts for nothing, and may be made again", async () => {
    const made = world({ storeTimeoutMs: 100 });
    const undo = made.around("settle", (pass, settlements) =>
      settlements.some(({ state }) => state === "completed") ? never() : pass(),
    );
    expect(await problem(made.tp.withRun(mine, () => "canary"))).toMatchObject({
      code: "RUN_LOST",
      value: "canary",
      cause: { code: "STORE_UNAVAILABLE" },
    });
    undo();
    // Whether it is on record nobody can know while that claim lives; then the next one's word counts.
    made.advance(2_001);
    expect((await made.tp.doubts.list()).doubts).toMatchObject([{ name: "run", scope: thread, runId: "r" }]);
    expect(await made.tp.withRun(mine, () => "second time")).toBe("second time");
    expect(await made.tp.withRun(mine, notRun)).toBe("second time");
    expect((await made.tp.doubts.list()).doubts).toEqual([]);
  });

  it.each([
    ["it is over", doneWithoutResult(), "RUN_FINISHED"],
    ["it must not be made again", refused("the customer left"), "RUN_FINISHED"],
    ["it may be made again", notDone(), undefined],
  ])("may be decided about by a person who knows that %s", async (_, verdict, code) => {
    const made = world({ storeTimeoutMs: 100 });
    const undo = made.around("settle", (pass, settlements) =>
      settlements.some(({ state }) => state === "completed") ? never() : pass(),
    );
    await rejection(made.tp.withRun(mine, () => "canary"));
    undo();
    made.advance(2_001);
    const [doubt] = (await made.tp.doubts.list()).doubts;
    if (doubt === undefined) throw new Error("there is no doubt");
    expect(await made.tp.doubts.resolve(doubt, verdict, { who: "ana", why: "asked the customer" })).toBe("applied");
    const again = made.tp.withRun(mine, () => "again");
    if (code === undefined) expect(await again).toBe("again");
    else expect(await problem(again)).toMatchObject({ code });
  });

  it("19: or did, frees no effect around it: that one may not say that nothing happened", async () => {
    const { tp } = world();
    const around = rejection(
      tp.once("outer:1", async () => {
        await tp.withRun(mine, () => 1);
        throw notExecuted("so it seems");
      }),
    );
    expect(await around).toMatchObject({ code: "EFFECT_IN_DOUBT" });
  });

  it("has its first outcome, when that was recorded after all while the second one worked", async () => {
    const made = world();
    const slow = gate();
    const undo = made.around("settle", async (pass, settlements) => {
      if (!settlements.some(({ state }) => state === "completed")) return await pass();
      undo();
      await slow.opened;
      return await pass();
    });
    const first = rejection(made.tp.withRun(mine, () => "first"));
    await until(() => made.asked("settle").length === 1);
    expect(await made.worker().threads.unlock(thread, { token: 1, who: "test", why: "stands still" })).toBe("unlocked");
    const second = made.worker().withRun(mine, () => {
      slow.open();
      return "second";
    });
    expect(await second).toBe("first");
    expect(await first).toMatchObject({ code: "RUN_LOST" });
    expect(await made.tp.withRun(mine, notRun)).toBe("first");
  });
});

describe.concurrent("two runs of one id", () => {
  it("run once, also when the second had looked before the first returned", async () => {
    const made = world();
    const first = await hold(made.worker(), mine);
    const undo = made.around("claim", async (pass) => {
      undo();
      first.end();
      await first.over;
      return await pass();
    });
    expect(await made.tp.withRun(mine, notRun)).toBe("r");
    expect(await made.record(thread, "thread")).toMatchObject({ token: 2, state: "released" });
  });

  it("run once, also when both waited", async () => {
    const made = world();
    const other = await hold(made.worker());
    let ran = 0;
    const twins = [1, 2].map(() =>
      made
        .worker()
        .withRun({ ...mine, onBusy: "wait", maxWaitMs: 20_000 }, () => ++ran)
        .catch((error: unknown) => error),
    );
    await waiting(made, 2);
    other.end();
    // The second one meets it at work, or finds it done.
    for (const outcome of await Promise.all(twins))
      if (outcome !== 1) expect(outcome).toMatchObject({ code: "RUN_IN_PROGRESS" });
    expect(ran).toBe(1);
    expect(await lineOf(made)).toEqual([]);
  });
});
