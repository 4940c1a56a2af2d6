import { done } from "@twiceproof/core";
import { expect } from "vitest";
import { it, leaseMs, operator } from "./support/place.ts";

const key = "order:1";

it("on SIGTERM, what can finish in time finishes and is recorded, nothing new starts, and the process ends by itself", async ({
  here,
}) => {
  const worker = await here.start({ stopAt: ["acted"], graceMs: 60_000 });
  const running = worker.ask("once", { key });
  await worker.at("acted");
  worker.terminate();
  await worker.at("closing");
  expect(await worker.ask("once", { key: "order:2" })).toMatchObject({ code: "CLOSED" });
  expect(await worker.ask("run", { thread: "t", runId: "r" })).toMatchObject({ code: "CLOSED" });
  expect(await worker.ask("exclusive", { key: "l" })).toMatchObject({ code: "CLOSED" });
  worker.pass("acted");

  expect(await running).toMatchObject({ value: { key, pid: worker.pid } });
  expect(await worker.ended).toBe(0);
  expect(await here.effect(key)).toMatchObject({ state: "completed" });
  expect(await here.effect("order:2")).toBeNull();
  expect(await here.tp.doubts.list()).toEqual({ doubts: [] });
  expect(here.acts(key)).toBe(1);
});

it("9: on SIGTERM, what cannot finish in time is in doubt at once, not after its lease", async ({ here }) => {
  const worker = await here.start({ stopAt: ["acted"], graceMs: 100 });
  void worker.ask("once", { key, leaseMs: 24 * 60 * 60 * 1_000 });
  await worker.at("acted");
  worker.terminate();
  await worker.at("aborted");
  expect(await worker.ended).toBe(0);

  const record = await here.effect(key);
  expect(record).toMatchObject({ state: "in-doubt", abandoned: true });
  expect(record?.leaseUntil).toBeGreaterThan(record?.readAt ?? 0);
  expect(await here.history(key)).toMatchObject([{ what: "abandoned", why: "shutdown", token: 1 }]);
  const second = await here.start();
  expect(await second.ask("once", { key, waitMs: 0 })).toMatchObject({ code: "EFFECT_IN_DOUBT" });
  expect(await here.tp.doubts.resolve(await here.doubt(key), done("found"), operator)).toBe("applied");
  expect(await second.ask("once", { key })).toEqual({ value: "found" });
  expect(here.acts(key)).toBe(1);
});

it("9: on SIGTERM, a run that cannot finish in time frees its thread at once", async ({ here }) => {
  const worker = await here.start({ stopAt: ["run"], graceMs: 100 });
  void worker.ask("run", { thread: "t", runId: "first", leaseMs: 24 * 60 * 60 * 1_000 });
  await worker.at("run");
  worker.terminate();
  await worker.at("run aborted");
  expect(await worker.ended).toBe(0);
  const next = await here.start();
  expect(await next.ask("run", { thread: "t", runId: "second" })).toEqual({ value: { token: 2, outcomes: [] } });
});

it("on SIGTERM, an idle worker that has used the store ends by itself", async ({ here }) => {
  const worker = await here.start();
  await worker.ask("once", { key, leaseMs });
  await worker.ask("run", { thread: "t", runId: "r", calls: [{ key: "order:2" }] });
  worker.terminate();
  expect(await worker.ended).toBe(0);
});
