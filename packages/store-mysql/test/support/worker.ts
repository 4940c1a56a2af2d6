import type { ClaimRequest } from "@twiceproof/core/store";
import { claimId, randomId } from "@twiceproof/core/store";
import { ready, say, shuffled } from "@twiceproof/test-servers/worker";
import { createPool } from "mysql2/promise";
import { mysqlStore } from "../../src/index.ts";

/** What the tests let other processes do: `node worker.ts <task> <url> <parameter>`. */
const tasks: Readonly<Record<string, (url: string, parameter: string) => Promise<void>>> = {
  /** Claims the same keys as everybody else, in lists and in an order of its own; says which it won. */
  async race(url, count) {
    const pool = createPool({ uri: url, connectionLimit: 4 });
    const store = mysqlStore(pool);
    const requests = shuffled(Array.from({ length: Number(count) }, (_, index) => effect(`order:${index}`)));
    await store.health();
    await ready();
    const won: string[] = [];
    for (let from = 0, size = 1; from < requests.length; from += size, size = (size % 24) + 1) {
      const batch = requests.slice(from, from + size);
      const answers = await store.claim(batch);
      won.push(...batch.filter((_, index) => answers[index]?.answer === "won").map((request) => request.key));
    }
    await pool.end();
    say(won);
  },

  /** Migrates at the same moment as others. */
  async migrate(url) {
    const pool = createPool(url);
    const store = mysqlStore(pool);
    await pool.query("do 0");
    await ready();
    await store.migrate();
    say((await store.health()).warnings);
    await pool.end();
  },
};

function effect(key: string): ClaimRequest {
  return {
    id: claimId("test", "effect", key),
    attemptId: randomId(),
    namespace: "test",
    kind: "effect",
    key,
    name: "charge",
    scope: null,
    turn: null,
    runId: null,
    fingerprint: "1:same",
    holder: `worker-${process.pid}`,
    leaseMs: 60_000,
    seen: null,
    fence: null,
  };
}

const [task = "", url = "", parameter = ""] = process.argv.slice(2);
await tasks[task]?.(url, parameter);
