import { randomUUID } from "node:crypto";
import { describe, expect } from "vitest";
import { it } from "./support/place.ts";
import type { Dispatch, Outcome } from "./support/protocol.ts";
import type { Worker } from "./support/spawn.ts";

const thread = "thread";
/** Where nobody is to lose its thread, also when the machine is slow. */
const leaseMs = 20_000;

function asks(topic: string): Dispatch {
  return { thread, runId: randomUUID(), sent: "input", topic };
}

/** A question, the call of the tool, what it found, and the answer, all of one worker. */
function turn(topic: string, { pid }: Worker): readonly string[] {
  const found = `${topic}, by ${pid}`;
  return [topic, "", found, found];
}

function isTold(outcome: Outcome): boolean {
  return "answer" in outcome;
}

describe.for(["one sqlite", "sqlite", "postgres"] as const)("two workers on one thread, %s", (on) => {
  it("without the guard both are told of success, and the thread does not hold both turns", async ({ openPlace }) => {
    const here = await openPlace(on);
    const workers = await Promise.all([1, 2].map(() => here.start({ guarded: false, stops: true })));
    const outcomes = workers.map((worker, index) => worker.dispatch(asks(index === 0 ? "APPLE" : "BANANA")));
    for (const worker of workers) await worker.at("in the tool");
    for (const worker of workers) worker.goOn();
    expect((await Promise.all(outcomes)).map(isTold)).toEqual([true, true]);
    const [one, two] = workers as [Worker, Worker];
    const [apple, banana] = [turn("APPLE", one), turn("BANANA", two)];
    const texts = await here.texts(thread);
    expect(texts).not.toEqual([...apple, ...banana]);
    expect(texts).not.toEqual([...banana, ...apple]);
  });

  it("1: reject: one works and is stored, the other is told so, round by round", async ({ openPlace }) => {
    const here = await openPlace(on);
    const workers = await Promise.all([1, 2].map(() => here.start({ guarded: true, stops: true, leaseMs })));
    const stored: string[] = [];
    for (let round = 0; round < 4; round++) {
      const runs = workers.map((worker, index) => {
        const topic = `${index === 0 ? "APPLE" : "BANANA"} ${round}`;
        return { worker, topic, outcome: worker.dispatch(asks(topic)) };
      });
      // The winner stays in its tool until the other has its answer.
      const loser = await Promise.race(runs.map(async (run) => ({ ...run, told: await run.outcome })));
      expect(loser.told).toMatchObject({ code: "THREAD_BUSY" });
      const winner = runs.find(({ worker }) => worker !== loser.worker) ?? expect.fail();
      await winner.worker.at("in the tool");
      winner.worker.goOn();
      expect(await winner.outcome).toMatchObject({ answer: `${winner.topic}, by ${winner.worker.pid}` });
      stored.push(...turn(winner.topic, winner.worker));
      expect(await here.texts(thread)).toEqual(stored);
    }
  });

  it("1: wait: ten runs at once are all stored, each question with its own answer", async ({ openPlace }) => {
    const here = await openPlace(on);
    const workers = await Promise.all([1, 2].map(() => here.start({ guarded: true, onBusy: "wait", leaseMs })));
    const runs = Array.from({ length: 10 }, (_, index) => {
      const worker = workers[index % 2] ?? expect.fail();
      return { worker, topic: `topic ${index}`, outcome: worker.dispatch(asks(`topic ${index}`)) };
    });
    for (const { worker, topic, outcome } of runs)
      expect(await outcome).toMatchObject({ answer: `${topic}, by ${worker.pid}` });
    const texts = await here.texts(thread);
    expect(texts).toHaveLength(40);
    for (const { worker, topic } of runs) {
      const at = texts.indexOf(topic);
      expect(texts.slice(at, at + 4)).toEqual(turn(topic, worker));
    }
  });

  it("1: wait: who came first is next", async ({ openPlace }) => {
    const here = await openPlace(on);
    const [first, second, third] = (await Promise.all([
      here.start({ guarded: true, stops: true, leaseMs }),
      here.start({ guarded: true, onBusy: "wait", leaseMs }),
      here.start({ guarded: true, onBusy: "wait", leaseMs }),
    ])) as [Worker, Worker, Worker];
    const outcomes = [first.dispatch(asks("one"))];
    await first.at("in the tool");
    for (const [place, worker] of [second, third].entries()) {
      outcomes.push(worker.dispatch(asks(place === 0 ? "two" : "three")));
      await here.queued(thread, place + 1);
    }
    first.goOn();
    expect((await Promise.all(outcomes)).map(isTold)).toEqual([true, true, true]);
    expect(await here.texts(thread)).toEqual([...turn("one", first), ...turn("two", second), ...turn("three", third)]);
  });

  it("14: a holder that stood still past its lease is told that it lost; the other's turn stands as it was", async ({
    openPlace,
  }) => {
    const here = await openPlace(on);
    const [old, next] = (await Promise.all([
      here.start({ guarded: true, stops: true }),
      here.start({ guarded: true }),
    ])) as [Worker, Worker];
    const lost = old.dispatch(asks("APPLE"));
    await old.at("in the tool");
    old.freeze();
    await here.lapsed(thread);
    await here.doubt();
    expect(await next.dispatch(asks("BANANA"))).toMatchObject({ answer: `BANANA, by ${next.pid}` });
    const [before, count] = [await here.texts(thread), await here.checkpoints(thread)];
    old.thaw();
    old.goOn();
    expect(await lost).toMatchObject({ code: "RUN_LOST" });
    expect(await here.texts(thread)).toEqual(before);
    expect(await here.checkpoints(thread)).toBe(count);
    const [apple, call, doubt, ...rest] = before;
    expect([apple, call, ...rest]).toEqual(["APPLE", "", ...turn("BANANA", next)]);
    expect(doubt).toMatch(/^The outcome of "research" is unknown/);
    // What it did outside is on record all the same.
    expect(here.acts()).toEqual([old.pid, next.pid]);
  });

  it("3: a holder that was killed frees its thread with its lease, and no sooner", async ({ openPlace }) => {
    const here = await openPlace(on);
    const [victim, next] = (await Promise.all([
      here.start({ guarded: true, stops: true }),
      here.start({ guarded: true }),
    ])) as [Worker, Worker];
    void victim.dispatch(asks("APPLE"));
    await victim.at("in the tool");
    expect(await next.dispatch(asks("too early"))).toMatchObject({ code: "THREAD_BUSY" });
    await victim.kill();
    await here.lapsed(thread);
    expect(await next.dispatch(asks("BANANA"))).toMatchObject({ answer: `BANANA, by ${next.pid}` });
    expect((await here.texts(thread)).slice(3)).toEqual(turn("BANANA", next));
  });

  it("1: edits and deletions by others are refused while a run works, and not afterwards", async ({ openPlace }) => {
    const here = await openPlace(on);
    const [holder, other] = (await Promise.all([
      here.start({ guarded: true, stops: true, leaseMs }),
      here.start({ guarded: true, onBusy: "wait", leaseMs }),
    ])) as [Worker, Worker];
    const run = holder.dispatch(asks("APPLE"));
    await holder.at("in the tool");
    for (const sent of ["an edit", "a deletion"] as const)
      expect(await other.dispatch({ ...asks("edited"), sent })).toMatchObject({ code: "THREAD_BUSY" });
    holder.goOn();
    expect(isTold(await run)).toBe(true);
    expect(await here.texts(thread)).toEqual(turn("APPLE", holder));
    expect(isTold(await other.dispatch({ ...asks("edited"), sent: "an edit" }))).toBe(true);
    expect(await here.texts(thread)).toEqual([...turn("APPLE", holder), "edited"]);
    expect(isTold(await other.dispatch({ ...asks(""), sent: "a deletion" }))).toBe(true);
    expect(await here.texts(thread)).toEqual([]);
  });
});
