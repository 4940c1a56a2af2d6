import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { findCharges, type Order } from "./charge.ts";
import type { Actor } from "./processes.ts";
import type { Stage } from "./stage.ts";
import type { WorkerSaid } from "./worker.ts";

export interface Seen {
  /** Charges that the API counted, or turns that the thread holds. */
  readonly count: number;
  readonly outcome: Outcome;
  readonly quote?: string;
}

/** What became of the last worker. `contradiction`: it was told one thing, and the database says another. */
export type Outcome =
  | "charged again"
  | "recorded result"
  | "in doubt"
  | "nobody asked"
  | "overwrote"
  | "refused"
  | "contradiction";

/** 1. The platform loses patience with a slow tool call, and sends it to a second worker. */
export async function sentAgain(stage: Stage, guarded: boolean): Promise<Seen> {
  const order = orderOf("slow", guarded);
  await stage.setBusy(true);
  const first = stage.worker({ tool: "charge", guarded, order });
  await stage.charged(order, 1);
  // Charged, and not answered: the first worker still runs. The platform's patience ends here.
  const second = stage.worker({ tool: "charge", guarded, order });
  const waiting = second.heard("a sign", (said) => said.say === "waiting");
  await Promise.race([waiting, result(second), stage.charged(order, 2)]);
  await stage.setBusy(false);
  await result(first);
  return await seen(stage, order, await result(second));
}

/** 2. The worker dies between the charge and the record of it; another one gets the call. */
export async function killed(stage: Stage, guarded: boolean): Promise<Seen> {
  const order = orderOf("killed", guarded);
  await stage.setBusy(true);
  const first = stage.worker({ tool: "charge", guarded, order });
  await stage.charged(order, 1);
  await first.kill();
  const second = stage.worker({ tool: "charge", guarded, order });
  await Promise.race([result(second), stage.charged(order, 2)]);
  await stage.setBusy(false);
  return await seen(stage, order, await result(second));
}

/** 3. The API answers look-ups again, and a third worker gets the call of scene 2. */
export async function reconciled(stage: Stage, guarded: boolean): Promise<Seen> {
  const order = orderOf("killed", guarded);
  // Without a record of the doubt, no platform has a reason to send a call again that was answered.
  const said = guarded ? await result(stage.worker({ tool: "charge", guarded, order })) : undefined;
  return await seen(stage, order, said);
}

/** 4. Two messages reach one thread at the same moment, and each starts a run. */
export async function twoRuns(stage: Stage, guarded: boolean): Promise<Seen> {
  const threadFile = join(stage.directory, `thread-${guarded}.json`);
  await writeFile(threadFile, "[]");
  const begin = async (runId: string) => {
    const worker = stage.worker({ tool: "turn", guarded, runId, threadFile });
    return {
      runId,
      worker,
      said: await worker.heard("a start", (said) => said.say === "read" || said.say === "refused"),
    };
  };

  // Both have read the thread, or were refused, before the first one stores its turn.
  const both = await Promise.all([begin("run-1"), begin("run-2")]);
  for (const { worker, said } of both) if (said.say === "read") await store(worker);
  const [refused] = both.flatMap(({ runId, said }) => (said.say === "refused" ? [{ runId, ...said }] : []));
  // A refused run has read and written nothing, so its message is simply sent again.
  if (refused !== undefined) await store((await begin(refused.runId)).worker);

  const count = (JSON.parse(await readFile(threadFile, "utf8")) as string[]).length;
  const holder = both.find(({ said }) => said.say === "read");
  if (refused === undefined) return { count, outcome: "overwrote" };
  const quote = `${refused.runId}: ${refused.code}, held by ${refused.heldBy}`;
  return { count, outcome: refused.heldBy === holder?.runId ? "refused" : "contradiction", quote };
}

/** One order for each scene and mode: every count starts from nothing. */
function orderOf(scene: string, guarded: boolean): Order {
  return { orderId: `${scene}-${guarded ? "with" : "without"}`, cents: 4_200 };
}

type Result = Extract<WorkerSaid, { say: "charged" | "in doubt" }>;

function result(worker: Actor<WorkerSaid>): Promise<Result> {
  return worker.heard("a result", (said) => said.say === "charged" || said.say === "in doubt");
}

async function store(worker: Actor<WorkerSaid>): Promise<void> {
  worker.goOn();
  await worker.heard("a stored turn", (said) => said.say === "stored");
}

async function seen(stage: Stage, { orderId }: Order, last: Result | undefined): Promise<Seen> {
  const charges = await findCharges(orderId);
  const count = charges.length;
  const { doubts } = await stage.tp.doubts.list();
  const inDoubt = doubts.some(({ key }) => key === `order:${orderId}`);
  if (inDoubt !== (last?.say === "in doubt")) return { count, outcome: "contradiction" };
  switch (last?.say) {
    case "charged":
      return { count, outcome: last.charge.id === charges[0]?.id ? "recorded result" : "charged again" };
    case "in doubt":
      return { count, outcome: "in doubt", quote: last.message };
    case undefined:
      return { count, outcome: "nobody asked" };
  }
}
