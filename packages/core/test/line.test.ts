import { describe, expect, it } from "vitest";
import { isThreadBusy } from "../src/errors.ts";
import type { Left, Store } from "../src/store.ts";
import { loadedWith } from "./support/clocks.ts";
import { brokenConnection, never } from "./support/faults.ts";
import { hold, lineOf, thread, threadId, waiting } from "./support/runs.ts";
import { gate, notRun, rejection, until } from "./support/waiting.ts";
import { problem, world } from "./support/world.ts";

const wait = { thread, onBusy: "wait", maxWaitMs: 20_000 } as const;

describe.concurrent("a run that waits", () => {
  it("1: gets the thread in the order in which it came, on any worker, one at a time", async () => {
    const made = world();
    const first = await hold(made.worker());
    const order: number[] = [];
    let inside = 0;
    const others: Promise<number | null>[] = [];
    for (let n = 0; n < 8; n++) {
      const body = async ({ token }: { readonly token: number | null }): Promise<number | null> => {
        expect(++inside).toBe(1);
        order.push(n);
        await new Promise((resolve) => setImmediate(resolve));
        inside--;
        return token;
      };
      others.push((n % 2 ? made.tp : made.worker()).withRun({ ...wait, runId: `r${n}` }, body));
      await waiting(made, n + 1);
    }
    expect((await lineOf(made)).map(({ runId }) => runId)).toEqual(Array.from({ length: 8 }, (_, n) => `r${n}`));
    first.end();
    expect(await Promise.all(others)).toEqual([2, 3, 4, 5, 6, 7, 8, 9]);
    expect(order).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
    expect(await lineOf(made)).toEqual([]);
  });

  it("1: is passed by nobody, and who does not wait is told that it is next", async () => {
    const made = world();
    const first = await hold(made.worker());
    const { opened, open } = gate();
    const undo = made.around("claim", async (pass, requests) => {
      if (requests.some(({ ticketId, seen }) => ticketId !== undefined && seen !== null)) await opened;
      return await pass();
    });
    const second = made.tp.withRun({ ...wait, runId: "second" }, ({ token }) => token);
    await waiting(made, 1);
    first.end();
    await first.over;
    const error = await problem(made.worker().withRun({ thread, runId: "third" }, notRun));
    expect(error).toMatchObject({
      code: "THREAD_BUSY",
      queueDepth: 1,
      holder: { runId: "second", state: "queued", liveness: "queued" },
    });
    expect(error.retryAfterMs).toBeGreaterThanOrEqual(1_000);
    expect((await problem(made.worker().withRun({ thread, runId: "second" }, notRun))).code).toBe("RUN_IN_PROGRESS");
    expect((await problem(made.worker().withRun({ ...wait, maxWaitMs: 30 }, notRun))).code).toBe("THREAD_WAIT_TIMEOUT");
    open();
    undo();
    expect(await second).toBe(2);
  });

  it("that died is skipped when its place has lapsed", async () => {
    const made = world();
    const first = await hold(made.worker());
    const dead = problem(made.tp.withRun(wait, notRun));
    await waiting(made, 1);
    made.around("queue", () => never());
    made.around("leave", () => never());
    const next = made.worker().withRun(wait, ({ token }) => token);
    await waiting(made, 2);
    made.advance(5_001);
    first.end();
    expect(await next).toBe(2);
    expect(await dead).toMatchObject({ code: "STORE_UNAVAILABLE" });
  });

  it("is refused at once when as many wait as may", async () => {
    const made = world();
    const first = await hold(made.worker(), { runId: "first" });
    const second = made.worker().withRun({ ...wait, maxQueue: 1 }, ({ token }) => token);
    await waiting(made, 1);
    const error = await problem(made.tp.withRun({ ...wait, maxQueue: 1 }, notRun));
    expect(error).toMatchObject({
      code: "THREAD_QUEUE_FULL",
      status: 409,
      queueDepth: 1,
      holder: { runId: "first", liveness: "live", state: "claimed" },
    });
    expect(isThreadBusy(error)).toBe(true);
    expect(made.asked("leave")).toHaveLength(0);
    first.end();
    expect(await second).toBe(2);
  });

  it("gives up after maxWaitMs, and leaves the line", async () => {
    const made = world();
    const first = await hold(made.worker(), { runId: "first" });
    const error = await problem(made.tp.withRun({ ...wait, maxWaitMs: 1_000 }, notRun));
    expect(error).toMatchObject({ code: "THREAD_WAIT_TIMEOUT", queueDepth: 0, holder: { runId: "first" } });
    expect(error.retryAfterMs).toBeGreaterThanOrEqual(1_000);
    expect(isThreadBusy(error)).toBe(true);
    await waiting(made, 0);
    expect(made.asked("queue").length).toBeGreaterThan(0);
    first.end();
    await first.over;
  });

  it("with no time to wait never enters the line", async () => {
    const made = world();
    const first = await hold(made.worker());
    expect(await problem(made.tp.withRun({ ...wait, maxWaitMs: 0 }, notRun))).toMatchObject({
      code: "THREAD_WAIT_TIMEOUT",
    });
    expect(made.asked("queue")).toHaveLength(0);
    first.end();
    await first.over;
  });

  it("leaves the line when its caller goes, and tells the caller's own reason", async () => {
    const made = world();
    const first = await hold(made.worker());
    const controller = new AbortController();
    const gone = rejection(made.tp.withRun({ ...wait, signal: controller.signal }, notRun));
    await waiting(made, 1);
    const behind = made.worker().withRun(wait, ({ token }) => token);
    await waiting(made, 2);
    const reason = new Error("gone");
    controller.abort(reason);
    expect(await gone).toBe(reason);
    await waiting(made, 1);
    first.end();
    expect(await behind).toBe(2);
  });

  it("is sent away by close at once, and has left the line before the store is closed", async () => {
    const made = world();
    const first = await hold(made.worker());
    const away = [
      problem(made.tp.withRun(wait, notRun)),
      problem(made.tp.withRun({ ...wait, onBusy: "interrupt" }, notRun)),
    ];
    await waiting(made, 2);
    let left = -1;
    made.around("close", async (pass) => {
      left = (await lineOf(made)).length;
      return await pass();
    });
    await made.tp.close({ graceMs: 20_000 });
    for (const each of away) expect(await each).toMatchObject({ code: "CLOSED" });
    expect(left).toBe(0);
    first.end();
    await first.over;
  });

  it("13: asks again with the same ticket when the answer was lost, and keeps its place", async () => {
    const made = world();
    const first = await hold(made.worker());
    let lost = 0;
    const undo = made.around("queue", async (pass) => {
      await pass();
      if (lost++ < 2) throw brokenConnection();
      undo();
      return await pass();
    });
    const second = made.tp.withRun(wait, ({ token }) => token);
    await until(() => lost > 2);
    const third = made.worker().withRun(wait, ({ token }) => token);
    await waiting(made, 2);
    expect(new Set(made.asked("queue").map(([{ ticketId }]) => ticketId)).size).toBe(1);
    first.end();
    expect(await Promise.all([second, third])).toEqual([2, 3]);
    // Once in vain, and once with what the line had told.
    expect(made.asked("claim")).toHaveLength(2);
  });

  it("13: leaves again when a question enters it late, after it has gone", async () => {
    const made = world();
    const first = await hold(made.worker());
    const { opened, open } = gate();
    let asked = 0;
    made.around("queue", async (pass) => {
      if (++asked === 1) await opened;
      return await pass();
    });
    const error = await problem(made.tp.withRun({ ...wait, maxWaitMs: 300 }, notRun));
    expect(error.code).toBe("THREAD_WAIT_TIMEOUT");
    await until(() => made.asked("leave").length === 1);
    await waiting(made, 0);
    open();
    await until(() => made.asked("leave").length === 2);
    await waiting(made, 0);
    first.end();
    await first.over;
  });

  it("takes over a thread whose holder died, when the lease is over", async () => {
    const made = world();
    void hold(made.tp, { leaseMs: 30_000 });
    await until(async () => (await made.record(thread, "thread").catch(() => null)) !== null);
    made.around("renew", () => never());
    const next = made.worker().withRun(wait, ({ token }) => token);
    await waiting(made, 1);
    made.advance(30_001);
    expect(await next).toBe(2);
  });

  it("is told its place, and whoever listens that it waits", async () => {
    const made = world();
    const first = await hold(made.tp, { runId: "first" });
    const second = made.worker().withRun(wait, () => undefined);
    await waiting(made, 1);
    const places: number[] = [];
    const onWait = ({ ahead }: { readonly ahead: number }): void => {
      places.push(ahead);
      throw new Error("of the observer's own");
    };
    const third = made.tp.withRun({ ...wait, runId: "third", onWait }, ({ token }) => token);
    await waiting(made, 2);
    first.end();
    await second;
    expect(await third).toBe(3);
    expect(places).toEqual([1, 0]);
    expect(made.events.filter(({ type }) => type === "waiting")).toMatchObject([
      { name: "run", id: threadId, scope: thread, runId: "third", token: 1 },
    ]);
  });

  it.each(["wait", "interrupt"] as const)("with onBusy %s never waits for itself", async (onBusy) => {
    const { tp } = world();
    const codes = await tp.withRun({ thread, runId: "r" }, async () => [
      (await problem(tp.withRun({ thread, onBusy }, notRun))).code,
      (await problem(tp.withRun({ thread, runId: "r", onBusy }, notRun))).code,
    ]);
    expect(codes).toEqual(["WAITS_FOR_ITSELF", "WAITS_FOR_ITSELF"]);
  });

  it.each(["reject", "wait", "interrupt"] as const)(
    "with onBusy %s is told of the very same run at once, and lets it be",
    async (onBusy) => {
      const made = world();
      const first = await hold(made.worker(), { runId: "r" });
      const error = await problem(made.tp.withRun({ ...wait, runId: "r", onBusy }, notRun));
      expect(error).toMatchObject({ code: "RUN_IN_PROGRESS", holder: { runId: "r", state: "claimed" } });
      expect(isThreadBusy(error)).toBe(true);
      expect(made.asked("queue")).toHaveLength(0);
      first.end();
      expect(await first.over).toBe("r");
    },
  );

  it("is told of the very same run also when that one waited too, and got there first", async () => {
    const made = world();
    const first = await hold(made.worker());
    const { opened, open } = gate();
    const twins = [1, 2].map(() => made.worker().withRun({ ...wait, runId: "r" }, () => opened));
    await waiting(made, 2);
    first.end();
    const refused = await problem(
      Promise.any(twins.map((twin) => twin.then(notRun, (error: unknown) => error))).then((error) =>
        Promise.reject(error),
      ),
    );
    expect(refused).toMatchObject({ code: "RUN_IN_PROGRESS" });
    open();
    const outcomes = await Promise.allSettled(twins);
    expect(outcomes.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
  });
});

describe.concurrent("a lock of exclusive", () => {
  it("1: is given in the order in which it was asked for", async () => {
    const made = world();
    const { opened, open } = gate();
    const first = made.tp.exclusive("lock", () => opened);
    await until(async () => (await made.record("lock", "lock").catch(() => null)) !== null);
    const tokens: number[] = [];
    const others: Promise<unknown>[] = [];
    for (let n = 0; n < 4; n++) {
      others.push(made.worker().exclusive("lock", () => tokens.push(n), { waitMs: 20_000 }));
      const { id } = await made.record("lock", "lock");
      await until(async () => (await made.tp.store.line(id)).length === n + 1);
    }
    expect(await problem(made.tp.exclusive("lock", notRun))).toMatchObject({ code: "LOCK_BUSY", queueDepth: 4 });
    open();
    await Promise.all([first, ...others]);
    expect(tokens).toEqual([0, 1, 2, 3]);
  });
});

describe("a run that waits", () => {
  it("is woken by a release in its own process, by the store if that can, and by close: no timer has to pass", async () => {
    const { createTwiceproof, memoryStore } = await loadedWithoutTimers();
    const store = memoryStore();
    const wakers = new Set<() => void>();
    const watching = {
      ...store,
      watch(id: string, wake: () => void) {
        expect(id).toBe(threadId);
        wakers.add(wake);
        return () => wakers.delete(wake);
      },
    };
    const [here, there] = [createTwiceproof({ store }), createTwiceproof({ store: watching })];
    const first = await hold(here);
    const second = here.withRun(wait, ({ token }) => token);
    await until(async () => (await store.line(threadId)).length === 1);
    const third = there.withRun(wait, ({ token }) => token);
    await until(() => wakers.size === 1);
    first.end();
    expect(await second).toBe(2);
    for (const wake of wakers) wake();
    expect(await third).toBe(3);
    expect(wakers.size).toBe(0);
    const last = await hold(there);
    const away = problem(here.withRun(wait, notRun));
    await until(async () => (await store.line(threadId)).length === 1);
    await here.close();
    expect(await away).toMatchObject({ code: "CLOSED" });
    last.end();
    await last.over;
  });

  it("13: and is told how the lock was left, claims it without another look, and believes no word that is wrong", async () => {
    const { createTwiceproof, memoryStore } = await loadedWithoutTimers();
    const store = memoryStore();
    const wakers = new Set<(left?: Left) => void>();
    let looks = 0;
    const watching: Store = {
      ...store,
      watch(_id, wake) {
        wakers.add(wake);
        return () => wakers.delete(wake);
      },
      async queue(request) {
        looks++;
        return await store.queue(request);
      },
    };
    const [here, there] = [createTwiceproof({ store }), createTwiceproof({ store: watching })];
    const leave = async (told: (left: Left) => Left): Promise<void> => {
      const [record] = await store.get([threadId]);
      if (record) for (const wake of wakers) wake(told(record));
    };
    for (const told of [(left: Left) => left, (left: Left) => ({ ...left, version: left.version - 1 })]) {
      const first = await hold(here);
      looks = 0;
      const second = there.withRun(wait, ({ token }) => token);
      await until(async () => (await store.line(threadId)).length === 1);
      // Too early: somebody has it.
      await leave(told);
      await until(() => looks === 2);
      first.end();
      await first.over;
      await leave(told);
      expect(await second).toBe((first.run.token ?? 0) + 1);
      expect(looks).toBe(2);
    }
  });
});

/** With timers that never fire: whoever only polls would wait for ever. */
function loadedWithoutTimers() {
  const never = () => setTimeout(() => undefined, 1_000_000).unref();
  return loadedWith({ setTimeout: never as never }, async () => ({
    ...(await import("../src/twiceproof.ts")),
    ...(await import("../src/memory-store.ts")),
  }));
}
