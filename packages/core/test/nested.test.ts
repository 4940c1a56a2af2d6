import { describe, expect, it } from "vitest";
import { notExecuted, oneRequest, refused } from "../src/classify.ts";
import { defineEffect } from "../src/effect.ts";
import { findTwiceproofError } from "../src/errors.ts";
import type { Twiceproof } from "../src/twiceproof.ts";
import { brokenConnection } from "./support/faults.ts";
import { gate, notRun, rejection, until } from "./support/waiting.ts";
import { problem, world } from "./support/world.ts";

const releasing = (): never => {
  throw notExecuted("it was not sent");
};

/** Runs `inside` in an outer effect whose own throw, if any, says that it did not happen. */
async function outer(tp: Twiceproof, inside: () => Promise<unknown>): Promise<string> {
  const error = await problem(tp.once("outer:1", inside));
  return error.code;
}

describe("19: an error of an inner effect proves nothing about the outer one", () => {
  const inner = (tp: Twiceproof): Promise<unknown> => tp.once("inner:1", releasing);

  it.each<readonly [string, (tp: Twiceproof) => Promise<unknown>]>([
    ["as it is", inner],
    ["as a cause", (tp) => inner(tp).catch((cause: unknown) => Promise.reject(new Error("wrapped", { cause })))],
    ["in an AggregateError", (tp) => Promise.any([inner(tp)])],
    ["unwrapped", (tp) => inner(tp).catch((error: Error) => Promise.reject(error.cause))],
  ])("19: thrown on %s, an inner effect's notExecuted does not release the outer", async (_, inside) => {
    const { tp, record } = world();
    expect(await outer(tp, () => inside(tp))).toBe("EFFECT_IN_DOUBT");
    expect((await record("inner:1")).state).toBe("released");
    expect((await record("outer:1")).state).toBe("in-doubt");
  });

  it("19: nor does an inner effect's refusal refuse it, also with a classifier that would", async () => {
    const { tp, record } = world();
    const error = await problem(
      tp.once("outer:1", () => tp.once("inner:1", () => Promise.reject(refused("no"))), { classify: () => "failed" }),
    );
    expect(error.code).toBe("EFFECT_IN_DOUBT");
    expect((await record("outer:1")).state).toBe("in-doubt");
  });

  it("19: nor does the error by which an inner effect's single request never left", async () => {
    const { tp } = world();
    const unmade = Object.assign(new Error("connect"), { code: "ECONNREFUSED", syscall: "connect" });
    const error = await problem(
      tp.once(
        "outer:1",
        () =>
          tp
            .once("inner:1", () => Promise.reject(unmade), { classify: oneRequest })
            .catch((caught: Error) => Promise.reject(caught.cause)),
        { classify: oneRequest },
      ),
    );
    expect(error.code).toBe("EFFECT_IN_DOUBT");
  });
});

describe("19: a read inside of an effect", () => {
  it("proves nothing about it either", async () => {
    const { tp } = world();
    const lookUp = defineEffect({ name: "look-up", kind: "read", run: releasing });
    expect(await outer(tp, () => tp.once(lookUp, undefined))).toBe("EFFECT_IN_DOUBT");
    const plain = await problem(tp.once("outer:2", () => tp.once("look-up:1", releasing, { kind: "read" })));
    expect(plain.code).toBe("EFFECT_IN_DOUBT");
  });
});

describe("19: an outer effect that says notExecuted", () => {
  it("is in doubt when an inner one completed", async () => {
    const { tp, record } = world();
    expect(
      await outer(tp, async () => {
        await tp.once("inner:1", () => "done");
        releasing();
      }),
    ).toBe("EFFECT_IN_DOUBT");
    expect((await record("outer:1")).state).toBe("in-doubt");
  });

  it("is in doubt when an inner one is, whatever was done with its error", async () => {
    const { tp } = world();
    expect(
      await outer(tp, async () => {
        await tp.once("inner:1", () => Promise.reject(brokenConnection())).catch(() => undefined);
        releasing();
      }),
    ).toBe("EFFECT_IN_DOUBT");
  });

  it("is in doubt when an inner one is still running", async () => {
    const { tp } = world();
    const { opened, open } = gate();
    let inner: Promise<unknown> = Promise.resolve();
    const code = await outer(tp, async () => {
      const started = gate();
      inner = tp.once("inner:1", () => {
        started.open();
        return opened;
      });
      await started.opened;
      releasing();
    });
    expect(code).toBe("EFFECT_IN_DOUBT");
    open();
    await inner;
  });

  it("is in doubt when an inner one was asked for and has no answer yet", async () => {
    const { tp, around } = world();
    const { opened, open } = gate();
    let inner: Promise<unknown> = Promise.resolve();
    const code = await outer(tp, async () => {
      around("claim", async (pass) => {
        await opened;
        return await pass();
      });
      inner = tp.once("inner:1", () => "done");
      releasing();
    });
    expect(code).toBe("EFFECT_IN_DOUBT");
    open();
    expect(await inner).toBe("done");
  });

  it("is released when the inner ones were", async () => {
    const { tp, record } = world();
    expect(
      await outer(tp, async () => {
        await tp.once("inner:1", releasing).catch(() => undefined);
        await tp.once("inner:2", releasing).catch(() => undefined);
        releasing();
      }),
    ).toBe("EFFECT_NOT_EXECUTED");
    expect((await record("outer:1")).state).toBe("released");
  });

  it("is released when what it asked for had been done before, by another", async () => {
    const { tp } = world();
    await tp.once("inner:1", () => "done");
    expect(
      await outer(tp, async () => {
        await tp.once("inner:1", notRun);
        releasing();
      }),
    ).toBe("EFFECT_NOT_EXECUTED");
  });

  it("is in doubt when a verdict said 'done' about the inner one that says otherwise", async () => {
    const { tp, advance } = world();
    expect(
      await outer(tp, async () => {
        const inner = tp.once(
          "inner:1",
          async () => {
            advance(1_001);
            const [doubt] = (await tp.doubts.list({ name: "inner" })).doubts;
            if (doubt) await tp.doubts.resolve(doubt, { answer: "done", result: 1 }, { who: "ann", why: "saw it" });
            releasing();
          },
          { leaseMs: 1_000 },
        );
        await inner.catch(() => undefined);
        releasing();
      }),
    ).toBe("EFFECT_IN_DOUBT");
  });

  it("counts what is nested two levels down, and inside a lock", async () => {
    const { tp } = world();
    expect(
      await outer(tp, async () => {
        await tp
          .exclusive("lock", () =>
            tp.once("middle:1", async () => {
              await tp.once("inner:1", () => "done");
              releasing();
            }),
          )
          .catch(() => undefined);
        releasing();
      }),
    ).toBe("EFFECT_IN_DOUBT");
  });
});

describe("an effect that waits for itself", () => {
  it("is told so at once, and nothing is claimed for it", async () => {
    const { tp, asked } = world();
    const error = await problem(tp.once("k:1", () => tp.once("k:1", notRun)));
    expect(error.code).toBe("EFFECT_IN_DOUBT");
    expect(findTwiceproofError(error.cause, "WAITS_FOR_ITSELF")).toBeDefined();
    expect(asked("claim")).toHaveLength(1);
  });

  it("is told so through another effect, a lock and a run", async () => {
    const { tp } = world();
    const told = await tp.once("k:1", () =>
      tp.exclusive("lock", () =>
        tp.withRun({ thread: "t" }, (run) =>
          run.once("k:2", () => problem(tp.once("k:1", notRun)).then(({ code }) => code)),
        ),
      ),
    );
    expect(told).toBe("WAITS_FOR_ITSELF");
  });

  it("is bounded by waitMs where the asynchronous context was lost", async () => {
    const { tp, elsewhere } = world();
    const code = await tp.once("k:1", () =>
      problem(elsewhere(() => tp.once("k:1", notRun, { waitMs: 60 }))).then((error) => error.code),
    );
    expect(code).toBe("EFFECT_RUNNING");
  });

  it("does not stop what the body left running, once the body is over", async () => {
    const { tp } = world();
    const { opened, open } = gate();
    let later: Promise<unknown> = Promise.resolve();
    const first = tp.once("k:1", () => {
      later = opened.then(() => tp.once("k:1", notRun));
      return "value";
    });
    expect(await first).toBe("value");
    open();
    expect(await later).toBe("value");
  });

  it("does not stop a loop that was started inside a run from running the thread again", async () => {
    const { tp } = world();
    const { opened, open } = gate();
    let later: Promise<unknown> = Promise.resolve();
    await tp.withRun({ thread: "t" }, () => {
      later = opened.then(() => tp.withRun({ thread: "t" }, () => "again"));
    });
    open();
    expect(await later).toBe("again");
  });

  it("a run inside its own run is told so too", async () => {
    const { tp } = world();
    const code = await tp.withRun({ thread: "t" }, () =>
      problem(tp.withRun({ thread: "t" }, notRun)).then((error) => error.code),
    );
    expect(code).toBe("WAITS_FOR_ITSELF");
    const lock = await tp.exclusive("k", () => problem(tp.exclusive("k", notRun)).then((error) => error.code));
    expect(lock).toBe("WAITS_FOR_ITSELF");
  });
});

describe("nested effects", () => {
  it("may wait for each other's keys in one process without an error", async () => {
    const { tp, executions } = world();
    const shared = defineEffect({ name: "shared", key: () => "shared:1", run: async () => "s" });
    const both = await Promise.all(["a:1", "b:1"].map((key) => tp.once(key, () => tp.once(shared, undefined))));
    expect(both).toEqual(["s", "s"]);
    expect(executions()).toBe(3);
  });

  it("of one store and another do not count as each other", async () => {
    const one = world();
    const other = world({ namespace: "other" });
    expect(await one.tp.once("k:1", () => other.tp.once("k:1", () => "inner"))).toBe("inner");
    await until(() => one.executions() === 1 && other.executions() === 1);
    expect(await rejection(one.tp.once("k:2", () => other.tp.once("k:2", releasing)))).toMatchObject({
      code: "EFFECT_IN_DOUBT",
    });
  });
});
