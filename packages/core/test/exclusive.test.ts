import { describe, expect, it } from "vitest";
import { isLost } from "../src/errors.ts";
import { block } from "./support/clocks.ts";
import { brokenConnection, never } from "./support/faults.ts";
import { gate, notRun, rejection, until } from "./support/waiting.ts";
import { problem, world } from "./support/world.ts";

describe.concurrent("exclusive", () => {
  it("1: has one holder at a time, with a token that grows", async () => {
    const { tp, worker } = world();
    let inside = 0;
    const body = async ({ token }: { token: number }): Promise<number> => {
      inside++;
      expect(inside).toBe(1);
      await Promise.resolve();
      inside--;
      return token;
    };
    const tokens = await Promise.all(
      [tp, tp, worker(), worker()].map((each) => each.exclusive("lock", body, { waitMs: 4_000 })),
    );
    expect(tokens.sort()).toEqual([1, 2, 3, 4]);
  });

  it("13: takes a lock that it gave back in one question, which names the version that it left, and never a later one", async () => {
    const { tp, worker, asked, around, advance } = world();
    const token = (each = tp) => each.exclusive("lock", (held) => held.token);
    const named = () => asked("claim").flatMap(([requests]) => requests.map(({ seen }) => seen));
    expect([await token(), await token()]).toEqual([1, 2]);
    expect(named()).toEqual([null, 2]);
    expect(await token(worker())).toBe(3);
    expect(await token()).toBe(4);
    expect(named().slice(2)).toEqual([4, 6]);
    const mend = around("settle", never);
    expect(await token()).toBe(5);
    mend();
    advance(60_000);
    expect(await token()).toBe(6);
    expect(named().slice(4)).toEqual([8, 8, 9]);
  });

  it("tells a second holder at once who is busy, without a key in the message", async () => {
    const { tp, worker, record } = world();
    const { opened, open } = gate();
    const first = tp.exclusive("secret-lock", () => opened);
    await until(async () => (await record("secret-lock", "lock").catch(() => null)) !== null);
    const error = await problem(worker().exclusive("secret-lock", notRun));
    expect(error).toMatchObject({ code: "LOCK_BUSY", status: 409, holder: { liveness: "live" } });
    expect(error.retryAfterMs).toBeGreaterThanOrEqual(1_000);
    expect(error.message).not.toContain("secret-lock");
    open();
    await first;
  });

  it("waits up to waitMs, and stops when its signal aborts", async () => {
    const { tp, worker, asked, record } = world();
    const { opened, open } = gate();
    const first = tp.exclusive("lock", () => opened);
    await until(async () => (await record("lock", "lock").catch(() => null)) !== null);
    expect(await problem(worker().exclusive("lock", notRun, { waitMs: 60 }))).toMatchObject({ code: "LOCK_BUSY" });
    const controller = new AbortController();
    const waiting = rejection(tp.exclusive("lock", notRun, { waitMs: 20_000, signal: controller.signal }));
    await until(() => asked("claim").length > 1);
    const reason = new Error("gone");
    controller.abort(reason);
    expect(await waiting).toBe(reason);
    const second = tp.exclusive("lock", () => "mine", { waitMs: 4_000 });
    open();
    expect(await second).toBe("mine");
    await first;
  });

  it("is given back when its caller goes away before the body starts", async () => {
    const { tp, around, record } = world();
    const controller = new AbortController();
    const reason = new Error("gone");
    around("claim", async (pass) => {
      const answers = await pass();
      controller.abort(reason);
      return answers;
    });
    expect(await rejection(tp.exclusive("lock", notRun, { signal: controller.signal }))).toBe(reason);
    expect((await record("lock", "lock")).state).toBe("released");
  });

  it("is taken over when its lease is over; the first holder is stopped, and told that it lost", async () => {
    const { tp, worker, advance, record, executions } = world();
    const told = gate();
    const first = problem(
      tp.exclusive(
        "lock",
        async ({ signal }) => {
          signal.addEventListener("abort", told.open);
          await told.opened;
          expect(isLost(signal.reason)).toBe(true);
          return "canary";
        },
        { leaseMs: 1_000 },
      ),
    );
    await until(async () => (await record("lock", "lock").catch(() => null)) !== null);
    advance(1_001);
    expect(await worker().exclusive("lock", ({ token }) => token)).toBe(2);
    const error = await first;
    expect(error).toMatchObject({ code: "LOCK_LOST", value: "canary" });
    expect(isLost(error)).toBe(true);
    expect(executions()).toBe(0);
  });

  it("that was lost unnoticed is an error although the body returned", async () => {
    const { tp, worker, elsewhere, advance } = world();
    const error = await problem(
      tp.exclusive("lock", async () => {
        advance(30_001);
        await elsewhere(() => worker().exclusive("lock", () => undefined));
        return "canary";
      }),
    );
    expect(error).toMatchObject({ code: "LOCK_LOST", value: "canary" });
    expect(JSON.stringify(error)).not.toContain("canary");
  });

  it("passes the body's own error on, also when the lock was lost", async () => {
    const { tp, worker, elsewhere, advance, record } = world();
    const thrown = new RangeError("mine");
    expect(await rejection(tp.exclusive("lock", () => Promise.reject(thrown)))).toBe(thrown);
    expect((await record("lock", "lock")).state).toBe("released");
    const lost = tp.exclusive("lock", async () => {
      advance(30_001);
      await elsewhere(() => worker().exclusive("lock", () => undefined));
      throw thrown;
    });
    expect(await rejection(lost)).toBe(thrown);
  });

  it("2: never takes an effect's row for a lock, whatever its key and state", async () => {
    const { tp, advance, record } = world();
    await rejection(tp.once("k:1", () => Promise.reject(brokenConnection()), { leaseMs: 1_000 }));
    advance(1_001);
    const before = await record("k:1");
    expect(await tp.exclusive("k:1", ({ token }) => token)).toBe(1);
    const after = await record("k:1");
    expect({ ...after, readAt: 0 }).toEqual({ ...before, readAt: 0 });
    expect(await problem(tp.once("k:1", notRun))).toMatchObject({ code: "EFFECT_IN_DOUBT" });
  });

  it.each([
    ["fails", () => Promise.reject(brokenConnection())],
    ["hangs", () => never<never>()],
  ] as const)("11: stops its holder when the store %s for longer than the lease", async (_, fault) => {
    const { tp, around } = world({ storeTimeoutMs: 200 });
    const mend = [around("renew", fault), around("settle", fault)];
    const error = await problem(
      tp.exclusive(
        "lock",
        async ({ signal }) => {
          await new Promise((resolve) => signal.addEventListener("abort", resolve));
          expect(isLost(signal.reason)).toBe(true);
          return "canary";
        },
        { leaseMs: 1_000 },
      ),
    );
    expect(error).toMatchObject({ code: "LOCK_LOST" });
    for (const each of mend) each();
  });

  it("does not tell of a loss that its own release looks like", async () => {
    const { tp, around, record } = world();
    let signalOf: AbortSignal | undefined;
    around("settle", async (pass) => {
      const answers = await pass();
      // The heartbeat crosses with the release, and finds the lock free.
      await until(async () => (await record("lock", "lock")).state === "released");
      const crossed = gate();
      const undo = around("renew", async (renew) => {
        const renewed = await renew();
        crossed.open();
        return renewed;
      });
      await crossed.opened;
      undo();
      return answers;
    });
    expect(
      await tp.exclusive(
        "lock",
        ({ signal }) => {
          signalOf = signal;
          return "value";
        },
        { leaseMs: 1_000 },
      ),
    ).toBe("value");
    expect(signalOf?.aborted).toBe(false);
  });

  it.each([
    ["key", ["", notRun]],
    ["leaseMs", ["lock", notRun, { leaseMs: 999 }]],
    ["waitMs", ["lock", notRun, { waitMs: -1 }]],
  ] as const)("refuses a wrong %s before anything is claimed", async (what, args) => {
    const { tp, asked } = world();
    const error = await problem(tp.exclusive(...(args as unknown as Parameters<typeof tp.exclusive>)));
    expect(error).toMatchObject({ code: "INVALID_ARGUMENT" });
    expect(error.message).toContain(`\`${what}\``);
    expect(asked("claim")).toHaveLength(0);
  });
});

describe("a blocked event loop", () => {
  it("9: beyond the lease loses no lock that nobody took over", async () => {
    const { tp, asked } = world();
    const value = await tp.exclusive(
      "lock",
      async ({ signal }) => {
        block(1_100);
        const before = asked("renew").length;
        await until(() => asked("renew").length > before + 2);
        return signal.aborted ? "stopped" : "held";
      },
      { leaseMs: 1_000 },
    );
    expect(value).toBe("held");
  });
});
