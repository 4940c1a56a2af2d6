import { done, notDone } from "@twiceproof/core";
import { expect } from "vitest";
import { it, leaseMs, operator, until } from "./support/place.ts";

const key = "order:1";

it("11: paused past its lease before the effect, it renews before the body starts", async ({ here }) => {
  const worker = await here.start({ stopAt: ["after claim"] });
  const call = worker.ask("once", { key, leaseMs });
  await worker.at("after claim");
  worker.freeze();
  await here.doubt(key);
  worker.thaw();
  worker.pass("after claim");

  expect(await call).toMatchObject({ value: { key, pid: worker.pid } });
  const steps = await worker.trace();
  expect(steps.slice(0, 3)).toEqual(["before claim", "after claim", "renew"]);
  expect(steps.indexOf("body")).toBeGreaterThan(2);
  expect(here.allActs().map(({ token }) => token)).toEqual([1]);
});

it("3: paused before the effect while a verdict freed the key and another ran it, it does not start", async ({
  here,
}) => {
  const [worker, other] = await Promise.all([here.start({ stopAt: ["after claim"] }), here.start()]);
  const call = worker.ask("once", { key, leaseMs });
  await worker.at("after claim");
  worker.freeze();
  expect(await here.tp.doubts.resolve(await here.doubt(key), notDone(), operator)).toBe("applied");
  const result = await other.ask("once", { key });
  expect(result).toMatchObject({ value: { pid: other.pid } });
  worker.thaw();
  worker.pass("after claim");
  // Its second claim stops there again, and finds the record.
  await worker.at("after claim");
  worker.pass("after claim");

  expect(await call).toEqual(result);
  expect(here.allActs()).toEqual([{ key, token: 2, pid: other.pid }]);
});

it("3: paused before the effect while a verdict freed the key, it must claim anew", async ({ here }) => {
  const worker = await here.start({ stopAt: ["after claim", "body"] });
  const call = worker.ask("once", { key, leaseMs });
  await worker.at("after claim");
  worker.freeze();
  expect(await here.tp.doubts.resolve(await here.doubt(key), notDone(), operator)).toBe("applied");
  worker.thaw();
  worker.pass("after claim");
  // It is answered "free" first, and then granted the version that it has seen.
  for (let answers = 0; answers < 2; answers++) {
    await worker.at("after claim");
    worker.pass("after claim");
  }
  await worker.at("body");
  expect(await here.effect(key)).toMatchObject({ state: "claimed", token: 2 });
  worker.pass("body");
  expect(await call).toMatchObject({ value: { pid: worker.pid } });
  expect(here.allActs()).toEqual([{ key, token: 2, pid: worker.pid }]);
});

it("9: paused past its lease in the effect, it renews and completes, when nobody decided", async ({ here }) => {
  const worker = await here.start({ stopAt: ["acted"] });
  const call = worker.ask("once", { key, leaseMs });
  await worker.at("acted");
  worker.freeze();
  const doubt = await here.doubt(key);
  worker.thaw();
  await until("a renewal", async () => (await here.effect(key))?.state === "claimed");
  // The evidence was gathered for a doubt that is none any more.
  expect(await here.tp.doubts.resolve(doubt, notDone(), operator)).toBe("stale");
  worker.pass("acted");
  expect(await call).toMatchObject({ value: { pid: worker.pid } });
  expect(await here.effect(key)).toMatchObject({ state: "completed", token: 1, byVerdict: false });
  expect(here.acts(key)).toBe(1);
});

it("4: paused in the effect while a wrong verdict let another claim it, its result is kept and the other is stopped", async ({
  here,
}) => {
  const [worker, other] = await Promise.all([here.start({ stopAt: ["acted"] }), here.start({ stopAt: ["body"] })]);
  const call = worker.ask("once", { key, leaseMs });
  await worker.at("acted");
  worker.freeze();
  expect(await here.tp.doubts.resolve(await here.doubt(key), notDone(), operator)).toBe("applied");
  const second = other.ask("once", { key, leaseMs });
  await other.at("body");
  worker.thaw();
  worker.pass("acted");

  const receipt = { key, pid: worker.pid, nonce: expect.any(String) };
  expect(await call).toMatchObject({ code: "EFFECT_IN_DOUBT", returned: receipt });
  await other.at("aborted");
  expect(await here.effect(key)).toMatchObject({ token: 2, cancelRequested: true });
  other.pass("body");
  expect(await second).toMatchObject({ code: "EFFECT_IN_DOUBT" });
  const [verdict, late] = await here.history(key);
  expect(verdict).toMatchObject({ what: "verdict-released", token: 1, ...operator });
  expect(late).toMatchObject({ what: "late-completed", token: 1 });
  expect(late?.result).toEqual(receipt);
  expect(await here.effect(key)).toMatchObject({ state: "in-doubt" });
  expect(here.allActs()).toEqual([{ key, token: 1, pid: worker.pid }]);
});

it("4: paused in the effect while a wrong verdict let another complete it, its result is kept beside the other's", async ({
  here,
}) => {
  const [worker, other] = await Promise.all([here.start({ stopAt: ["acted"] }), here.start()]);
  const call = worker.ask("once", { key, leaseMs });
  await worker.at("acted");
  worker.freeze();
  expect(await here.tp.doubts.resolve(await here.doubt(key), notDone(), operator)).toBe("applied");
  const second = await other.ask("once", { key });
  worker.pass("acted");
  worker.thaw();

  expect(await call).toMatchObject({ code: "EFFECT_IN_DOUBT", returned: { pid: worker.pid } });
  expect(await here.effect(key)).toMatchObject({ state: "completed", token: 2 });
  expect((await here.history(key)).map(({ what, token }) => [what, token])).toEqual([
    ["verdict-released", 1],
    ["late-completed", 1],
  ]);
  expect(await other.ask("once", { key })).toEqual(second);
  // The verdict was wrong, and two acts are what came of it: the record says so.
  expect(here.allActs().map(({ token }) => token)).toEqual([1, 2]);
});

it("4: paused after the effect, its late record is accepted, when nobody decided", async ({ here }) => {
  const worker = await here.start({ stopAt: ["before record"] });
  const call = worker.ask("once", { key, leaseMs });
  await worker.at("before record");
  worker.freeze();
  await here.doubt(key);
  worker.pass("before record");
  worker.thaw();
  expect(await call).toMatchObject({ value: { pid: worker.pid } });
  expect(await here.effect(key)).toMatchObject({ state: "completed", token: 1 });
  expect(here.acts(key)).toBe(1);
});

it("4: paused after the effect while a wrong verdict freed the key, its late record puts it back in doubt", async ({
  here,
}) => {
  const [worker, other] = await Promise.all([here.start({ stopAt: ["before record"] }), here.start()]);
  const call = worker.ask("once", { key, leaseMs });
  await worker.at("before record");
  worker.freeze();
  expect(await here.tp.doubts.resolve(await here.doubt(key), notDone(), operator)).toBe("applied");
  worker.pass("before record");
  worker.thaw();
  expect(await call).toMatchObject({ code: "EFFECT_IN_DOUBT", returned: { pid: worker.pid } });
  expect(await here.effect(key)).toMatchObject({ state: "in-doubt", token: 1, disputed: true });
  expect(await other.ask("once", { key })).toMatchObject({ code: "EFFECT_IN_DOUBT" });
  expect(here.acts(key)).toBe(1);
});

it("8: paused after the effect while a verdict gave a result, it gets what all others get", async ({ here }) => {
  const worker = await here.start({ stopAt: ["before record"] });
  const call = worker.ask("once", { key, leaseMs });
  await worker.at("before record");
  worker.freeze();
  expect(await here.tp.doubts.resolve(await here.doubt(key), done("found"), operator)).toBe("applied");
  worker.pass("before record");
  worker.thaw();
  expect(await call).toEqual({ value: "found" });
  expect(await here.effect(key)).toMatchObject({ state: "completed", byVerdict: true });
  expect((await here.history(key)).map(({ what }) => what)).toEqual(["verdict-completed", "late-completed"]);
  expect(here.acts(key)).toBe(1);
});
