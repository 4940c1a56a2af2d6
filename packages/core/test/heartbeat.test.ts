import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, it, vi } from "vitest";
import { stopwatch } from "../src/clock.ts";
import { TwiceproofError } from "../src/errors.ts";
import { createHeartbeat, type HoldOptions } from "../src/heartbeat.ts";
import { claimId, randomId } from "../src/id.ts";
import type { ClaimRef, Renewal, Renewed } from "../src/store.ts";
import { loadedWith } from "./support/clocks.ts";
import { brokenConnection, never } from "./support/faults.ts";
import { gate, notRun, until } from "./support/waiting.ts";
import { problem, type World, world } from "./support/world.ts";

const refOf = (key: string): ClaimRef => ({ id: claimId("default", "effect", key), attemptId: randomId(), token: 1 });
const lost = new TwiceproofError("LOCK_LOST", "Lost.");

function lease(leaseMs: number, kind: HoldOptions["kind"] = "effect"): HoldOptions {
  return { kind, leaseMs, sent: stopwatch(), lostError: () => lost, stopError: () => lost };
}

afterEach(() => {
  vi.useRealTimers();
});

describe.concurrent("a heartbeat", () => {
  it("renews each claim with its own lease, the short ones more often", async () => {
    const renewed: Renewal[] = [];
    const heartbeat = createHeartbeat(async (renewals) => {
      renewed.push(...renewals);
      return renewals.map(() => "held");
    });
    const short = heartbeat.hold(refOf("short"), lease(1_000));
    const long = heartbeat.hold(refOf("long"), lease(60_000));
    const count = (leaseMs: number): number => renewed.filter((each) => each.leaseMs === leaseMs).length;
    await until(() => count(1_000) >= 3);
    expect(count(60_000)).toBe(0);
    expect(new Set(renewed.map(({ id }) => id))).toEqual(new Set([short.ref.id]));
    short.drop();
    long.drop();
  });

  it("renews as often as it is told to, together with what is due, and no oftener because of others", async () => {
    const asked: number[][] = [];
    const heartbeat = createHeartbeat(async (renewals) => {
      asked.push(renewals.map(({ leaseMs }) => leaseMs));
      return renewals.map(() => "held");
    });
    const short = heartbeat.hold(refOf("short"), { ...lease(1_000), everyMs: 60_000 });
    const eager = heartbeat.hold(refOf("eager"), { ...lease(60_000), everyMs: 1_000 });
    const rare = heartbeat.hold(refOf("rare"), lease(60_000));
    await until(() => asked.flat().filter((leaseMs) => leaseMs === 60_000).length >= 2);
    const count = (leaseMs: number): number => asked.flat().filter((each) => each === leaseMs).length;
    // A third of a second, and a second.
    expect(count(1_000)).toBeGreaterThanOrEqual(2 * count(60_000));
    expect(asked.every((list) => list.filter((leaseMs) => leaseMs === 60_000).length <= 1)).toBe(true);
    for (const hold of [short, eager, rare]) hold.drop();
  });

  it("renews out of turn what something was decided about, and nothing else", async () => {
    const asked: string[] = [];
    const heartbeat = createHeartbeat(async (renewals) => {
      asked.push(...renewals.map(({ id }) => id));
      return renewals.map(() => "cancel-requested");
    });
    const decided = heartbeat.hold(refOf("decided"), lease(60_000, "lock"));
    const other = heartbeat.hold(refOf("other"), lease(60_000, "lock"));
    heartbeat.hurry(decided.ref.id);
    heartbeat.hurry(refOf("stranger").id);
    await until(() => decided.signal.aborted);
    expect(asked).toEqual([decided.ref.id]);
    for (const hold of [decided, other]) hold.drop();
  });

  it("renews a thousand claims in few statements", async () => {
    const lists: number[] = [];
    const seen = new Set<string>();
    const heartbeat = createHeartbeat(async (renewals) => {
      lists.push(renewals.length);
      for (const { id } of renewals) seen.add(id);
      return renewals.map(() => "held");
    });
    const holds = Array.from({ length: 1_000 }, (_, n) => heartbeat.hold(refOf(`k:${n}`), lease(1_000)));
    await until(() => seen.size === 1_000);
    expect(lists.length).toBeLessThanOrEqual(4);
    expect(Math.max(...lists)).toBeLessThanOrEqual(500);
    for (const hold of holds) hold.drop();
  });

  it("16: a batch that hangs holds up neither later claims nor, for long, its own", async () => {
    const blocked = refOf("blocked");
    const answered: string[] = [];
    const heartbeat = createHeartbeat(async (renewals) => {
      if (renewals.some(({ id }) => id === blocked.id)) return await never();
      answered.push(...renewals.map(({ id }) => id));
      return renewals.map(() => "held");
    });
    const neighbour = refOf("neighbour");
    const holds = [blocked, neighbour].map((ref) => heartbeat.hold(ref, lease(1_000)));
    await until(() => answered.includes(neighbour.id), 900);
    const later = refOf("later");
    holds.push(heartbeat.hold(later, lease(1_000)));
    await until(() => answered.includes(later.id), 900);
    for (const hold of holds) hold.drop();
  });

  it.each<readonly [string, () => Promise<readonly Renewed[]>]>([
    ["busy", async () => ["busy"]],
    ["failing", () => Promise.reject(brokenConnection())],
  ])("asks sooner again when the row or the store is %s, and loses no effect by it", async (_, answer) => {
    let asked = 0;
    const since = stopwatch();
    const heartbeat = createHeartbeat(() => (++asked < 4 ? answer() : Promise.resolve(["held"])));
    const hold = heartbeat.hold(refOf("k"), lease(1_000));
    await until(() => asked >= 4);
    expect(since()).toBeLessThan(1_300);
    expect(hold.lost()).toBe(false);
    expect(hold.signal.aborted).toBe(false);
    hold.drop();
  });

  it("9: never gives an effect up by itself, however late its lease", async () => {
    let asked = 0;
    const heartbeat = createHeartbeat(async () => {
      asked++;
      throw brokenConnection();
    });
    const hold = heartbeat.hold(refOf("k"), lease(1_000));
    await until(() => hold.leftMs() < -400 && asked > 3);
    expect(hold.signal.aborted).toBe(false);
    hold.drop();
  });

  it("stops its holder when the claim is lost, and asks no more", async () => {
    let asked = 0;
    const heartbeat = createHeartbeat(async (renewals) => {
      asked++;
      return renewals.map(() => "lost");
    });
    const hold = heartbeat.hold(refOf("k"), lease(1_000));
    await until(() => hold.lost());
    expect(hold.signal.reason).toBe(lost);
    expect(asked).toBe(1);
  });

  it("counts a lease from before the question, not from the answer", async () => {
    const slow = gate();
    const heartbeat = createHeartbeat(async () => {
      await slow.opened;
      return ["held"];
    });
    // Long, so that no beat of its own comes in between on a busy machine.
    const hold = heartbeat.hold(refOf("k"), lease(600_000));
    const renewing = hold.renew();
    await until(() => hold.leftMs() < 599_900);
    slow.open();
    expect(await renewing).toBe(true);
    expect(hold.leftMs()).toBeLessThan(599_900);
    hold.drop();
  });
});

describe("the timers", () => {
  it("works on under fake timers that a user's test installs", async () => {
    const { tp, record, worker } = world();
    const { opened, open } = gate();
    vi.useFakeTimers();
    const running = tp.once("k:1", () => opened.then(() => "value"), { leaseMs: 1_000 });
    await until(async () => (await record("k:1").catch(() => null)) !== null);
    const { version } = await record("k:1");
    await until(async () => (await record("k:1")).version > version + 1);
    expect(await problem(worker().once("k:1", notRun, { waitMs: 0 }))).toMatchObject({ code: "EFFECT_RUNNING" });
    open();
    expect(await running).toBe("value");
  });

  it("exist only while something is held", async () => {
    const { setTimeout, clearTimeout } = globalThis;
    const active = new Set<unknown>();
    const counting = ((run: () => void, ms: number) => {
      const handle = setTimeout(() => {
        active.delete(handle);
        run();
      }, ms);
      active.add(handle);
      return handle;
    }) as typeof setTimeout;
    const clearing = ((handle: Parameters<typeof clearTimeout>[0]) => {
      active.delete(handle);
      clearTimeout(handle);
    }) as typeof clearTimeout;
    const core = await loadedWith({ setTimeout: counting, clearTimeout: clearing }, () => import("../src/index.ts"));
    const tp = core.createTwiceproof({ store: core.memoryStore() });
    expect(active.size).toBe(0);
    let during = 0;
    const calls = ["k:1", "k:2"].map((key) => tp.once(key, () => (during = active.size)));
    await Promise.all([
      ...calls,
      tp.exclusive("lock", () => 1),
      tp.withRun({ thread: "t" }, (run) => run.once("k:3", () => 1)),
    ]);
    await tp.once("k:1", notRun);
    expect(during).toBeGreaterThan(0);
    await until(() => active.size === 0);
    await tp.close();
    expect(active.size).toBe(0);
  });

  it("keep no process alive", async () => {
    const index = fileURLToPath(new URL("../src/index.ts", import.meta.url));
    const script = `
      import { createTwiceproof, memoryStore } from ${JSON.stringify(index)};
      const tp = createTwiceproof({ store: memoryStore() });
      tp.once("k:1", () => { console.log("running"); return new Promise(() => undefined); });
      tp.exclusive("lock", () => new Promise(() => undefined));
    `;
    const child = spawn(process.execPath, ["--input-type=module", "--eval", script], { timeout: 8_000 });
    let printed = "";
    child.stdout.on("data", (chunk) => {
      printed += chunk;
    });
    const [code, signal] = await once(child, "close");
    expect({ code, signal, printed }).toEqual({ code: 0, signal: null, printed: "running\n" });
  }, 10_000);
});

describe("11: the time that a worker believes", () => {
  const renewing = (clock: { wall?: () => number; monotonic?: () => number }) =>
    loadedWith(clock, () => import("../src/clock.ts"));

  it("is the wall clock's where the monotonic one stood still", async () => {
    let now = 0;
    const clock = await renewing({ wall: () => now, monotonic: () => 0 });
    const elapsed = clock.stopwatch();
    now = 60_000;
    expect(elapsed()).toBe(60_000);
    expect(clock.monotonicStopwatch()()).toBe(0);
  });

  it("is the monotonic one's where the wall clock was set back", async () => {
    let wall = 1_000_000;
    let monotonic = 0;
    const clock = await renewing({ wall: () => wall, monotonic: () => monotonic });
    const elapsed = clock.stopwatch();
    wall = 0;
    monotonic = 5_000;
    expect(elapsed()).toBe(5_000);
  });
});

/** A world whose worker's wall clock can be put forward, as after the sleep of its machine. */
async function sleepyWorld(): Promise<World & { readonly sleep: (ms: number) => void }> {
  const { now } = Date;
  let aheadMs = 0;
  const fresh = await loadedWith({ wall: () => now() + aheadMs }, () => import("./support/world.ts"));
  return {
    ...fresh.world(),
    sleep(ms) {
      aheadMs += ms;
    },
  };
}

describe("11: an answer to a claim that comes after the lease is over", () => {
  it("is renewed before the body starts", async () => {
    const { tp, around, asked, executions, sleep } = await sleepyWorld();
    around("claim", async (pass) => {
      const answers = await pass();
      sleep(1_001);
      return answers;
    });
    const renewedBefore = await tp.once("k:1", () => asked("renew").length, { leaseMs: 1_000 });
    expect(renewedBefore).toBeGreaterThan(0);
    expect(executions()).toBe(1);
  });

  it("finds the claim decided: the body is not entered, and the caller gets what is on the record", async () => {
    const { tp, around, worker, advance, executions, sleep } = await sleepyWorld();
    const late = around("claim", async (pass) => {
      late();
      const answers = await pass();
      sleep(1_001);
      advance(1_001);
      const [doubt] = (await worker().doubts.list()).doubts;
      if (doubt)
        await worker().doubts.resolve(doubt, { answer: "done", result: "seen" }, { who: "ann", why: "saw it" });
      return answers;
    });
    expect(await tp.once("k:1", notRun, { leaseMs: 1_000 })).toBe("seen");
    expect(executions()).toBe(0);
  });

  it("of a lock that another took meanwhile: the body is not entered", async () => {
    const { tp, around, worker, advance, record, sleep } = await sleepyWorld();
    const { opened, open } = gate();
    let other: Promise<unknown> = Promise.resolve();
    const late = around("claim", async (pass) => {
      late();
      const answers = await pass();
      sleep(1_001);
      advance(1_001);
      other = worker().exclusive("lock", () => opened);
      await until(async () => (await record("lock", "lock")).token === 2);
      return answers;
    });
    expect(await problem(tp.exclusive("lock", notRun, { leaseMs: 1_000 }))).toMatchObject({ code: "LOCK_BUSY" });
    open();
    await other;
  });

  it("whose renewal fails: the body is not entered, and the claim is released when the store is back", async () => {
    const { tp, around, record, executions, sleep } = await sleepyWorld();
    const mend = around("renew", () => Promise.reject(brokenConnection()));
    around("claim", async (pass) => {
      const answers = await pass();
      sleep(1_001);
      return answers;
    });
    expect(await problem(tp.once("k:1", notRun, { leaseMs: 1_000 }))).toMatchObject({ code: "STORE_UNAVAILABLE" });
    mend();
    await until(async () => (await record("k:1")).state === "released");
    expect(executions()).toBe(0);
  });
});

describe.concurrent("9: a lapsed claim", () => {
  it("is renewed by its holder, and then is no doubt any more", async () => {
    const { tp, advance, record, executions } = world();
    const { opened, open } = gate();
    const running = tp.once("k:1", () => opened.then(() => "value"), { leaseMs: 1_000 });
    await until(() => executions() === 1);
    advance(1_001);
    expect((await record("k:1")).state).toBe("in-doubt");
    await until(async () => (await record("k:1")).state === "claimed");
    open();
    expect(await running).toBe("value");
  });

  it("that its holder abandoned stays abandoned when a renewal lands after", async () => {
    const { tp, around, record } = world();
    const { opened, open } = gate();
    let landed = false;
    around("renew", async (pass) => {
      await opened;
      const answers = await pass();
      landed = true;
      return answers;
    });
    const body = gate();
    const call = problem(
      tp.once("k:1", () => body.opened.then(() => Promise.reject(new Error("no answer"))), { leaseMs: 1_000 }),
    );
    await until(async () => (await record("k:1").catch(() => null))?.state === "claimed");
    await until(async () => Date.now() - (await record("k:1")).claimedAt > 400);
    body.open();
    expect(await call).toMatchObject({ code: "EFFECT_IN_DOUBT" });
    open();
    await until(() => landed);
    expect(await record("k:1")).toMatchObject({ state: "in-doubt", abandoned: true });
  });
});
