import { expect } from "vitest";
import { it, leaseMs, operator, until } from "./support/place.ts";

const thread = "t";
const interrupt = { thread, onBusy: "interrupt", graceMs: 50_000 } as const;

it("an interrupt reaches a run in another process by its heartbeat, and the next run starts after its release", async ({
  here,
}) => {
  const [holder, other] = await Promise.all([here.start({ stopAt: ["run"] }), here.start({ stopAt: ["run"] })]);
  const first = holder.ask("run", { thread, runId: "first", leaseMs, turnTakesMs: 0, calls: [{ key: "order:1" }] });
  await holder.at("run");
  const second = other.ask("run", { ...interrupt, runId: "second", turnTakesMs: 0 });
  await holder.at("run aborted");
  // It is stopping, and still holds its thread.
  expect(await here.tp.threads.get(thread)).toMatchObject({ runId: "first", state: "stopping", queueDepth: 1 });
  holder.pass("run");
  expect(await first).toMatchObject({ value: { token: 1, outcomes: [{ code: "RUN_CANCELLED" }] } });
  await other.at("run");
  expect(await here.tp.threads.get(thread)).toMatchObject({ runId: "second", token: 2, state: "claimed" });
  other.pass("run");
  expect(await second).toMatchObject({ value: { token: 2 } });
  const turns = ["question of first", "answer to first", "question of second", "answer to second"];
  expect(here.transcript()).toEqual(turns);
  expect(here.acts("order:1")).toBe(0);
});

it("an interrupt reaches a run with a long lease too, before that lease needs renewing", async ({ here }) => {
  const [holder, other] = await Promise.all([here.start({ stopAt: ["run"] }), here.start()]);
  const first = holder.ask("run", { thread, runId: "first", leaseMs: 3_600_000 });
  await holder.at("run");
  const second = other.ask("run", { ...interrupt, runId: "second" });
  await holder.at("run aborted");
  holder.pass("run");
  expect(await first).toMatchObject({ value: { token: 1 } });
  expect(await second).toMatchObject({ value: { token: 2 } });
});

it("an interrupt of a run that died waits for its lease, and one of a run that stands still gives up", async ({
  here,
}) => {
  const [dead, still, other] = await Promise.all([
    here.start({ stopAt: ["run"] }),
    here.start({ stopAt: ["run"] }),
    here.start(),
  ]);
  void dead.ask("run", { thread, runId: "dead", leaseMs });
  void still.ask("run", { thread: "u", runId: "still", leaseMs: 60_000 });
  await Promise.all([dead.at("run"), still.at("run")]);
  await dead.kill();
  still.freeze();
  expect(await other.ask("run", { ...interrupt, runId: "second" })).toMatchObject({ value: { token: 2 } });
  const refused = await other.ask("run", { ...interrupt, thread: "u", runId: "third", graceMs: 2_000 });
  expect(refused).toMatchObject({ code: "THREAD_WAIT_TIMEOUT", holder: { runId: "still", state: "stopping" } });
  await here.inLine("u");
});

it("18: a Stop that comes late does not touch the next run", async ({ here }) => {
  const [one, two] = await Promise.all([here.start({ stopAt: ["run"] }), here.start({ stopAt: ["run"] })]);
  const first = one.ask("run", { thread, runId: "first", leaseMs });
  await one.at("run");
  one.pass("run");
  await first;
  const second = two.ask("run", { thread, runId: "second", leaseMs, calls: [{ key: "order:2" }] });
  await two.at("run");
  expect(await here.tp.threads.cancel(thread, { ...operator, runId: "first" })).toBe("stale");
  // It has had a heartbeat since, and was told nothing.
  const before = (await here.thread(thread))?.version ?? 0;
  await until("a heartbeat", async () => ((await here.thread(thread))?.version ?? 0) > before);
  expect(await here.thread(thread)).toMatchObject({ runId: "second", cancelRequested: false });
  two.pass("run");
  expect(await second).toMatchObject({ value: { token: 2, outcomes: [{ value: { key: "order:2" } }] } });
});

it("15: a Stop that names the run reaches it in another process, and is in the history", async ({ here }) => {
  const worker = await here.start({ stopAt: ["run"] });
  const run = worker.ask("run", { thread, runId: "first", calls: [{ key: "order:1" }] });
  await worker.at("run");
  expect(await here.tp.threads.cancel(thread, { ...operator, runId: "first" })).toBe("requested");
  await worker.at("run aborted");
  worker.pass("run");
  expect(await run).toMatchObject({ value: { outcomes: [{ code: "RUN_CANCELLED" }] } });
  expect(here.acts("order:1")).toBe(0);
  const { id = "" } = (await here.thread(thread)) ?? {};
  expect(await here.tp.doubts.history(id)).toMatchObject([{ what: "cancel-requested", token: 1, ...operator }]);
});

it("3: a holder that stands still is unlocked: the next run need not wait for its lease, and the old one is lost", async ({
  here,
}) => {
  const [old, next] = await Promise.all([here.start({ stopAt: ["run"] }), here.start()]);
  const first = old.ask("run", { thread, runId: "first", leaseMs: 3_600_000, calls: [{ key: "order:1" }] });
  await old.at("run");
  old.freeze();
  const { token = 0 } = (await here.tp.threads.get(thread)) ?? {};
  expect(await here.tp.threads.unlock(thread, { ...operator, token })).toBe("unlocked");
  expect(await here.tp.threads.get(thread)).toBeNull();
  const second = await next.ask("run", { thread, runId: "second", turnTakesMs: 0, calls: [{ key: "order:2" }] });
  expect(second).toMatchObject({ value: { token: 3, outcomes: [{ value: { key: "order:2" } }] } });
  old.pass("run");
  old.thaw();
  expect(await first).toMatchObject({ code: "RUN_LOST", returned: { outcomes: [{ code: "RUN_LOST" }] } });
  expect(here.allActs().map(({ key }) => key)).toEqual(["order:2"]);
  expect(await here.thread(thread)).toMatchObject({ token: 3, state: "released" });
});

it("a page that is reloaded in mid-run may ask for its run again: it is told to stop, in progress until it has, and kept", async ({
  here,
}) => {
  const [holder, other] = await Promise.all([here.start({ stopAt: ["run"] }), here.start()]);
  const first = holder.ask("run", { thread, runId: "first", turnTakesMs: 0 });
  await holder.at("run");
  await holder.ask("abort", "first");
  await holder.at("run aborted");
  expect(await other.ask("run", { thread, runId: "first" })).toMatchObject({ code: "RUN_IN_PROGRESS" });
  const holds = { runId: "first", liveness: "live" };
  expect(await other.ask("run", { thread, runId: "next" })).toMatchObject({ code: "THREAD_BUSY", holder: holds });
  holder.pass("run");
  const outcome = await first;
  expect(outcome).toMatchObject({ value: { token: 1 } });
  expect(await other.ask("run", { thread, runId: "first" })).toEqual(outcome);
  expect(here.transcript()).toEqual(["question of first", "answer to first"]);
});
