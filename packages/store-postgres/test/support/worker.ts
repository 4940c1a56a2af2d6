import type { ClaimRequest } from "@twiceproof/core/store";
import { claimId, randomId } from "@twiceproof/core/store";
import { ready, say, shuffled } from "@twiceproof/test-servers/worker";
import { Pool } from "pg";
import { postgresStore } from "../../src/index.ts";

/** What the tests let other processes do: `node worker.ts <task> <parameter>...`. */
const tasks: Readonly<Record<string, (...parameters: string[]) => Promise<void>>> = {
  /** Claims the same keys as everybody else, in batches and in an order of its own; says which it won. */
  async race(url, schema, count) {
    const pool = new Pool({ connectionString: url, max: 3 });
    const store = postgresStore(pool, { schema: String(schema) });
    const requests = shuffled(Array.from({ length: Number(count) }, (_, index) => effect(`order:${index}`)));
    const batches = Array.from({ length: requests.length / 10 }, (_, index) =>
      requests.slice(index * 10, index * 10 + 10),
    );
    await ready();
    const won: string[] = [];
    async function work(): Promise<void> {
      for (let batch = batches.pop(); batch !== undefined; batch = batches.pop()) {
        const answers = await store.claim(batch);
        for (const [index, { key }] of batch.entries()) if (answers[index]?.answer === "won") won.push(key);
      }
    }
    await Promise.all([work(), work(), work()]);
    await pool.end();
    say(won);
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

const [task = "", ...parameters] = process.argv.slice(2);
await tasks[task]?.(...parameters);
