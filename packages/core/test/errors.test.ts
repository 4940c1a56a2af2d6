import { describe, expect, it, vi } from "vitest";
import { notExecuted, refused } from "../src/classify.ts";
import { defineEffect } from "../src/effect.ts";
import {
  findTwiceproofError,
  isFinal,
  isInDoubt,
  isKeyReused,
  isLost,
  isNotExecuted,
  isRefused,
  isRunning,
  isThreadBusy,
  isTwiceproofError,
  TwiceproofError,
} from "../src/errors.ts";
import { brokenConnection } from "./support/faults.ts";
import { gate, until } from "./support/waiting.ts";
import { problem, world } from "./support/world.ts";

const details = {
  help: "the operator's canary",
  ref: "cafecafe",
  id: "f".repeat(64),
  retryAfterMs: 1_000,
  holder: { runId: "canary", state: "claimed", ageMs: 1, heartbeatAgeMs: 1, leaseExpiresInMs: 1, liveness: "live" },
  value: { card: "canary" },
  cause: new Error("canary"),
} as const;

describe("an error of ours", () => {
  it("has a code, and a status that retry policies leave alone", () => {
    const error = new TwiceproofError("EFFECT_IN_DOUBT", "It may have happened.", details);
    expect(error).toMatchObject({
      name: "TwiceproofError",
      code: "EFFECT_IN_DOUBT",
      status: 409,
      message: "It may have happened.",
    });
    expect(error).toBeInstanceOf(Error);
    expect({ help: error.help, ref: error.ref, id: error.id, value: error.value, cause: error.cause }).toEqual({
      help: details.help,
      ref: details.ref,
      id: details.id,
      value: details.value,
      cause: details.cause,
    });
  });

  it("gives nothing but that to those who spread, serialise or list it", () => {
    const error = new TwiceproofError("EFFECT_IN_DOUBT", "It may have happened.", details);
    const shown = { name: "TwiceproofError", status: 409, code: "EFFECT_IN_DOUBT" };
    expect(JSON.parse(JSON.stringify(error))).toEqual(shown);
    expect({ ...error }).toEqual(shown);
    expect(Object.keys(error).sort()).toEqual(["code", "name", "status"]);
    expect(`${error}${JSON.stringify([error, { error }])}`).not.toMatch(/canary|cafecafe|fff/);
  });

  it("has help also when there is none, and no cause that nobody gave", () => {
    const error = new TwiceproofError("CLOSED", "Closed.");
    expect(error.help).toBe("");
    expect("cause" in error).toBe(false);
    expect(new TwiceproofError("CLOSED", "Closed.", { cause: undefined })).toHaveProperty("cause", undefined);
  });
});

describe("recognising an error", () => {
  it("works across two copies of the package", async () => {
    vi.resetModules();
    const copy = await import("../src/errors.ts");
    expect(copy.TwiceproofError).not.toBe(TwiceproofError);
    const theirs = new copy.TwiceproofError("EFFECT_IN_DOUBT", "It may have happened.");
    expect(theirs instanceof TwiceproofError).toBe(false);
    expect(isTwiceproofError(theirs)).toBe(true);
    expect(isInDoubt(theirs)).toBe(true);
    expect(copy.isInDoubt(new TwiceproofError("EFFECT_IN_DOUBT", "It may have happened."))).toBe(true);
  });

  it.each<readonly [(error: unknown) => boolean, readonly TwiceproofError["code"][]]>([
    [isInDoubt, ["EFFECT_IN_DOUBT"]],
    [isRunning, ["EFFECT_RUNNING"]],
    [isThreadBusy, ["THREAD_BUSY", "RUN_IN_PROGRESS"]],
    [isKeyReused, ["EFFECT_KEY_REUSED"]],
    [isRefused, ["EFFECT_REFUSED"]],
    [isNotExecuted, ["EFFECT_NOT_EXECUTED"]],
    [isLost, ["RUN_LOST", "LOCK_LOST"]],
    [isFinal, ["STORE_CLOSED", "STORE_READ_ONLY"]],
  ])("%o is about %j alone", (is, codes) => {
    for (const code of codes) expect(is(new TwiceproofError(code, "x"))).toBe(true);
    expect(is(new TwiceproofError("STORE_UNAVAILABLE", "x"))).toBe(false);
    for (const other of [undefined, null, "EFFECT_IN_DOUBT", { code: codes[0], status: 409 }, new Error(codes[0])])
      expect(is(other)).toBe(false);
  });

  it("walks causes and AggregateErrors, also where they go in circles", () => {
    const inDoubt = new TwiceproofError("EFFECT_IN_DOUBT", "It may have happened.");
    const round = new AggregateError([new Error("first")], "round");
    const knot = new Error("knot", { cause: round });
    round.errors.push(knot, round);
    expect(isInDoubt(knot)).toBe(false);
    round.errors.push(new Error("deep", { cause: new AggregateError([{ cause: inDoubt }]) }));
    expect(isInDoubt(knot)).toBe(true);
    expect(findTwiceproofError(knot)).toBe(inDoubt);
    expect(findTwiceproofError(knot, "CLOSED")).toBeUndefined();
    expect(findTwiceproofError(new TwiceproofError("CLOSED", "x", { cause: inDoubt }), "EFFECT_IN_DOUBT")).toBe(
      inDoubt,
    );
  });
});

describe("no message", () => {
  const canary = /c[a4]n[a4]ry/i;

  /** Everything that a model, a page or a log line may get to see. */
  function shown(error: TwiceproofError): string {
    return [error.message, String(error), JSON.stringify(error), JSON.stringify({ ...error })].join("\n");
  }

  it("of any code carries a key, an input, a result, a thread or another's error text", async () => {
    const made = world({ storeTimeoutMs: 150 });
    const { tp, worker, advance, around, elsewhere, record, executions } = made;
    const seen = new Map<string, TwiceproofError>();
    const meet = async (call: Promise<unknown>): Promise<void> => {
      const error = await problem(call);
      expect(isTwiceproofError(error)).toBe(true);
      seen.set(error.code, error);
    };
    const body = (): string => "canary-result";
    const key = (name: string): string => `${name}:canary-key`;
    const input = { text: "canary-input" };
    const failing = (): Promise<never> => Promise.reject(new Error("canary-error", { cause: brokenConnection() }));

    await meet(tp.once(key("doubt"), failing, { input }));
    await meet(tp.once(key("refuse"), () => Promise.reject(refused("no such card")), { input }));
    await meet(tp.once(key("release"), () => Promise.reject(notExecuted("not sent")), { input }));
    await tp.once(key("done"), body, { input });
    await meet(tp.once(key("done"), body, { input: "canary-other" }));
    await tp.once(key("fact"), body, { store: "fact" });
    await meet(tp.once(key("fact"), body));
    await meet(tp.once("canary key without a name\0", body));
    await meet(tp.once(defineEffect({ name: "typed", run: body }), { input }));
    const schema = {
      "~standard": {
        version: 1,
        vendor: "test",
        validate: () => ({ issues: [{ message: "canary", path: ["card"] }] }),
      },
    } as const;
    await meet(tp.once(defineEffect({ name: "typed", input: schema, run: body }), input as never));

    const { opened, open } = gate();
    const held = [
      tp.once(key("run"), () => opened.then(body)),
      tp.exclusive(key("lock"), () => opened),
      tp.withRun({ thread: "canary-thread", runId: "canary-run" }, () => opened),
    ];
    await until(() => executions() > 0);
    await until(async () => (await record("canary-thread", "thread").catch(() => null)) !== null);
    await meet(worker().once(key("run"), body, { waitMs: 0 }));
    await meet(worker().exclusive(key("lock"), body));
    await meet(worker().withRun({ thread: "canary-thread" }, body));
    await meet(worker().withRun({ thread: "canary-thread", runId: "canary-run" }, body));
    await meet(tp.exclusive(key("self"), () => tp.exclusive(key("self"), body)));
    open();
    await Promise.all(held);

    const takeOver = (act: () => Promise<unknown>) => async (): Promise<string> => {
      advance(30_001);
      await elsewhere(act);
      return body();
    };
    await meet(
      tp.withRun(
        { thread: "canary-thread" },
        takeOver(() => worker().withRun({ thread: "canary-thread" }, body)),
      ),
    );
    await meet(
      tp.exclusive(
        key("lock"),
        takeOver(() => worker().exclusive(key("lock"), body)),
      ),
    );

    const broken = Object.assign(new Error("canary-address refused"), { code: "ECONNREFUSED" });
    around("claim", () => Promise.reject(broken));
    await meet(tp.once(key("away"), body));
    await tp.close();
    await meet(tp.once(key("closed"), body));

    expect([...seen.keys()].sort()).toEqual([
      "CLOSED",
      "EFFECT_IN_DOUBT",
      "EFFECT_KEY_REUSED",
      "EFFECT_NOT_EXECUTED",
      "EFFECT_REFUSED",
      "EFFECT_RESULT_UNAVAILABLE",
      "EFFECT_RUNNING",
      "IDENTITY_MISSING",
      "INVALID_ARGUMENT",
      "INVALID_INPUT",
      "LOCK_BUSY",
      "LOCK_LOST",
      "RUN_IN_PROGRESS",
      "RUN_LOST",
      "STORE_UNAVAILABLE",
      "THREAD_BUSY",
      "WAITS_FOR_ITSELF",
    ]);
    for (const error of seen.values()) expect(shown(error)).not.toMatch(canary);
  });

  it("of a doubt tells a model more than is fixed, or how to settle it", async () => {
    const { tp } = world();
    const error = await problem(tp.once("charge:1", () => Promise.reject(brokenConnection())));
    expect(error.message).toBe(
      `The outcome of "charge" is unknown (ref ${error.ref}). It may have happened. Do not try it again in any form; tell the user that it is being checked.`,
    );
    expect(error.message).not.toMatch(/doubts|resolve|twiceproof/);
    expect(error.help).toContain("tp.doubts.resolve");
    expect(error.help).toContain(error.id);
  });
});
