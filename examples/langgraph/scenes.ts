import { randomUUID } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { done } from "@twiceproof/core";
import { deliver, newBill, readBill } from "./order.ts";
import type { Actor } from "./processes.ts";
import type { Stage } from "./stage.ts";
import type { Job, WorkerSaid } from "./worker.ts";

export interface Seen {
  /** Reports on the bill. */
  readonly reports: number;
  /** What the last worker answered with: the first report, or a later one. */
  readonly answer: "first report" | "later report";
  /** What the dispatcher was told before. */
  readonly quote?: string;
}

export interface Scene {
  readonly title: string;
  play(stage: Stage, guarded: boolean): Promise<Seen>;
}

export const scenes: readonly Scene[] = [
  {
    title: "The run is sent again, with its input, while the tool works",
    play: (stage, guarded) => sentWhileItWorks(stage, "rivers", guarded, (job) => job),
  },
  {
    title: "It is resumed from its last checkpoint while the tool works",
    play: (stage, guarded) => sentWhileItWorks(stage, "lakes", guarded, (job) => ({ ...job, question: null })),
  },
  { title: "Its worker is killed in the tool, and it is sent again", play: sentAfterDeath },
];

async function sentWhileItWorks(
  stage: Stage,
  about: string,
  guarded: boolean,
  again: (job: Job) => Job,
): Promise<Seen> {
  const job = newJob(about, guarded);
  const bill = await newBill();
  const first = stage.worker(job);
  await stage.billed(bill, 1);
  // Ordered and billed, and the report is not there yet. The platform's patience ends here.
  const second = stage.worker(again(job));
  await second.heard("a start", (said) => said.say === "started");
  // A second order comes at once, or never: without Twiceproof it is waited for, with it it gets two seconds.
  await Promise.race([stage.billed(bill, 2), ...(guarded ? [pause(2_000)] : [])]);
  await deliver();
  await result(first);
  return await seen(await result(second));
}

async function sentAfterDeath(stage: Stage, guarded: boolean): Promise<Seen> {
  const job = newJob("seas", guarded);
  const bill = await newBill();
  const first = stage.worker(job);
  await stage.billed(bill, 1);
  await first.kill();
  const second = stage.worker(job);
  await Promise.race([stage.billed(bill, 2), result(second)]);
  await deliver();
  const told = await result(second);
  if (!guarded) return await seen(told);
  if (told.say !== "in doubt") throw new Error("nobody was told of the doubt");

  // What the dispatcher is told of is looked into, here by the bill, and decided; then the run is sent once more.
  const [report] = await readBill();
  const [doubt] = (await stage.tp.doubts.list({ scope: job.thread })).doubts;
  if (doubt === undefined || report === undefined) throw new Error("there is nothing to decide");
  await stage.tp.doubts.resolve(doubt, done(report), { who: "operator", why: "it is on the bill" });
  return { ...(await seen(await result(stage.worker(job)))), quote: told.message };
}

/** One thread for each scene and mode. */
function newJob(about: string, guarded: boolean): Job {
  const question = `Order a research report on ${about}, and answer with it, word for word.`;
  return { guarded, thread: randomUUID(), runId: randomUUID(), question };
}

type Result = Exclude<WorkerSaid, { readonly say: "started" }>;

function result(worker: Actor<WorkerSaid>): Promise<Result> {
  return worker.heard("a result", (said) => said.say !== "started");
}

async function seen(last: Result): Promise<Seen> {
  const reports = await readBill();
  if (last.say === "in doubt") throw new Error("it is in doubt again");
  const isFirst = last.answer.includes(reports[0] ?? "no report");
  return { reports: reports.length, answer: isFirst ? "first report" : "later report" };
}
