import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createTwiceproof, type Twiceproof } from "@twiceproof/core";
import { sqliteStore } from "@twiceproof/store-sqlite";
import type { Order } from "./charge.ts";
import type { ApiSaid } from "./payment-api.ts";
import { type Actor, killAll, start } from "./processes.ts";
import type { Job, WorkerSaid } from "./worker.ts";

/** The platform: it starts workers, and sees the payment API and the database that all workers share. */
export interface Stage {
  readonly directory: string;
  /** The operator's view of the workers' database. */
  readonly tp: Twiceproof;
  /** Starts a process that does this one job. */
  worker(job: Job): Actor<WorkerSaid>;
  /** Resolves as soon as the API has charged for the order so many times, answered or not. */
  charged(order: Order, times: number): Promise<void>;
  /** While it is busy, the API goes on charging, but answers nobody. */
  setBusy(busy: boolean): Promise<void>;
  close(): Promise<void>;
}

export async function openStage(): Promise<Stage> {
  const directory = mkdtempSync(join(tmpdir(), "twiceproof-demo-"));
  process.once("exit", () => {
    void killAll();
    rmSync(directory, { recursive: true, force: true, maxRetries: 10 });
  });
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, () => process.exit(1));

  const api = start<ApiSaid>("the payment API", "payment-api.ts");
  const { url } = await api.heard("its address", (said) => said.say === "listening");
  // The workers inherit both.
  process.env.PAYMENT_API = url;
  process.env.DATABASE = join(directory, "app.db");
  const tp = createTwiceproof({ store: sqliteStore(process.env.DATABASE) });

  return {
    directory,
    tp,
    worker: (job) => start("a worker", "worker.ts", [JSON.stringify(job)]),
    async charged({ orderId }, times) {
      await api.heard(
        `charge ${times} of ${orderId}`,
        (said): said is ApiSaid => said.say === "charged" && said.orderId === orderId && said.count === times,
      );
    },
    async setBusy(busy) {
      await fetch(`${url}/busy`, { method: "PUT", body: JSON.stringify(busy) });
    },
    close: () => tp.close(),
  };
}
