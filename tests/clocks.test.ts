import { expect } from "vitest";
import { it, leaseMs, until } from "./support/place.ts";

const hour = 60 * 60 * 1_000;
const key = "order:1";

it("11: workers whose clocks are an hour apart agree on one winner for each key", async ({ here }) => {
  const workers = await Promise.all([-hour, 0, hour].map((wallMs) => here.start({ clock: { wallMs } })));
  const calls = Array.from({ length: 60 }, (_, index) => ({ key: `order:${index}` }));
  const [first, ...others] = await Promise.all(workers.map((worker) => worker.ask("onceAll", calls)));
  expect(first).toMatchObject({ value: calls.map((call) => ({ value: call })) });
  for (const other of others) expect(other).toEqual(first);
  expect(here.allActs()).toHaveLength(calls.length);
});

const directions = [
  { holder: "an hour fast", holderMs: hour, otherMs: -hour },
  { holder: "an hour slow", holderMs: -hour, otherMs: hour },
];

it.for(directions)(
  "11: a living holder whose clock is $holder is left alone",
  async ({ holderMs, otherMs }, { here }) => {
    const [holder, other] = await Promise.all([
      here.start({ clock: { wallMs: holderMs }, stopAt: ["run", "acted"] }),
      here.start({ clock: { wallMs: otherMs } }),
    ]);
    const run = holder.ask("run", { thread: "t", runId: "first", calls: [{ key }] });
    await holder.at("run");
    holder.pass("run");
    await holder.at("acted");

    const busy = await other.ask("run", { thread: "t", runId: "second" });
    expect(busy).toMatchObject({ code: "THREAD_BUSY", holder: { runId: "first", liveness: "live" } });
    expect("holder" in busy && busy.holder?.leaseExpiresInMs).toBeLessThanOrEqual(30_000);
    expect(await other.ask("once", { key, waitMs: 0 })).toMatchObject({ code: "EFFECT_RUNNING" });
    holder.pass("acted");
    expect(await run).toMatchObject({ value: { token: 1, outcomes: [{ value: { key } }] } });
    expect(here.acts(key)).toBe(1);
  },
);

it.for(directions)(
  "11: a dead holder whose clock was $holder lapses when the store says so",
  async ({ holderMs, otherMs }, { here }) => {
    const [holder, other] = await Promise.all([
      here.start({ clock: { wallMs: holderMs }, stopAt: ["acted"] }),
      here.start({ clock: { wallMs: otherMs } }),
    ]);
    void holder.ask("run", { thread: "t", runId: "first", leaseMs, calls: [{ key, leaseMs }] });
    await holder.at("acted");
    await holder.kill();
    expect(await other.ask("once", { key })).toMatchObject({ code: "EFFECT_IN_DOUBT" });
    await here.lapsed("t");
    const second = await other.ask("run", { thread: "t", runId: "second", calls: [{ key }] });
    expect(second).toMatchObject({ value: { token: 2, outcomes: [{ code: "EFFECT_IN_DOUBT" }] } });
    expect(here.acts(key)).toBe(1);
  },
);

it.for([
  { what: "its wall clock jumps an hour ahead", jump: { wallMs: hour } },
  { what: "its machine sleeps for an hour", jump: { monotonicMs: hour } },
  { what: "one clock jumps ahead and the other one back", jump: { wallMs: -hour, monotonicMs: hour } },
])("11: when $what after the claim, the holder renews before the body starts", async ({ jump }, { here }) => {
  const worker = await here.start({ stopAt: ["after claim"] });
  const call = worker.ask("once", { key });
  await worker.at("after claim");
  await worker.ask("setClock", jump);
  worker.pass("after claim");
  expect(await call).toMatchObject({ value: { key } });
  expect((await worker.trace()).slice(0, 4)).toEqual(["before claim", "after claim", "renew", "body"]);
  expect(here.acts(key)).toBe(1);
});

it("11: a holder whose wall clock is set back while it is paused past its lease renews before the body starts", async ({
  here,
}) => {
  const worker = await here.start({ stopAt: ["after claim"] });
  const call = worker.ask("once", { key, leaseMs });
  await worker.at("after claim");
  await worker.ask("setClock", { wallMs: -hour });
  await here.doubt(key);
  worker.pass("after claim");
  expect(await call).toMatchObject({ value: { key } });
  expect((await worker.trace()).slice(0, 3)).toEqual(["before claim", "after claim", "renew"]);
  expect(here.acts(key)).toBe(1);
});

it("9: a run whose clocks jump an hour ahead renews its lease and goes on", async ({ here }) => {
  const worker = await here.start({ stopAt: ["run"] });
  const run = worker.ask("run", { thread: "t", runId: "first", leaseMs, calls: [{ key }] });
  await worker.at("run");
  await worker.ask("setClock", { wallMs: hour, monotonicMs: hour });
  const before = (await here.thread("t"))?.version ?? 0;
  await until("two renewals", async () => ((await here.thread("t"))?.version ?? 0) >= before + 2);
  worker.pass("run");
  expect(await run).toMatchObject({ value: { token: 1, outcomes: [{ value: { key } }] } });
  expect(here.acts(key)).toBe(1);
});
