import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createTwiceproof, type Twiceproof } from "@twiceproof/core";
import { openDatabases } from "./databases.ts";
import { type Actor, killAll, start } from "./processes.ts";
import type { ServiceSaid } from "./research-service.ts";
import type { Job, WorkerSaid } from "./worker.ts";

/** The platform: it starts workers, and sees the service's bill and the database that all workers share. */
export interface Stage {
  /** The operator's view of the claims. */
  readonly tp: Twiceproof;
  /** Starts a process that does this one job. */
  worker(job: Job): Actor<WorkerSaid>;
  /** Resolves as soon as so many reports are on this bill, delivered or not. */
  billed(bill: number, count: number): Promise<void>;
  close(): Promise<void>;
}

export async function openStage(): Promise<Stage> {
  const directory = mkdtempSync(join(tmpdir(), "twiceproof-langgraph-"));
  process.once("exit", () => {
    void killAll();
    rmSync(directory, { recursive: true, force: true, maxRetries: 10 });
  });
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, () => process.exit(1));

  const service = start<ServiceSaid>("the research service", "research-service.ts");
  const { url } = await service.heard("its address", (said) => said.say === "listening");
  // The workers inherit all three. LangChain is compiled once, and not for each of them.
  process.env.RESEARCH_SERVICE = url;
  process.env.DATABASES = directory;
  process.env.NODE_COMPILE_CACHE = join(directory, "compiled");
  const databases = openDatabases();
  await databases.migrate();
  const tp = createTwiceproof({ store: databases.store });

  return {
    tp,
    worker: (job) => start("a worker", "worker.ts", [JSON.stringify(job)]),
    async billed(bill, count) {
      await service.heard(
        `report ${count} on bill ${bill}`,
        (said): said is ServiceSaid => said.say === "billed" && said.bill === bill && said.count === count,
      );
    },
    async close() {
      await tp.close();
      await databases.close();
    },
  };
}
