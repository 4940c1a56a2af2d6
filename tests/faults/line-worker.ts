import { appendFileSync, existsSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { type ClaimRequest, randomId, type Store } from "@twiceproof/core/store";
import { mysqlStore } from "@twiceproof/store-mysql";
import { postgresStore } from "@twiceproof/store-postgres";
import { sqliteStore } from "@twiceproof/store-sqlite";
import { createPool } from "mysql2/promise";
import { Pool } from "pg";
import type { LineEvent, LineSetup } from "./line-workers.ts";

/** One process of those that wait for a lock: `node line-worker.ts <LineSetup as JSON>`. */
const { source, request, rounds, ticketLeaseMs, log, start } = JSON.parse(process.argv[2] ?? "") as LineSetup;
const { store, end } = open();

function open(): { readonly store: Store; readonly end: () => Promise<unknown> } {
  if (source.startsWith("postgres")) {
    const pool = new Pool({ connectionString: source, max: 2 });
    return { store: postgresStore(pool), end: () => pool.end() };
  }
  if (source.startsWith("mysql")) {
    const pool = createPool({ uri: source, connectionLimit: 2 });
    return { store: mysqlStore(pool), end: () => pool.end() };
  }
  const store = sqliteStore(source);
  return { store, end: store.close };
}

/** One line in a file that only grows, in the order in which things happened on this machine. */
function say(event: LineEvent): void {
  appendFileSync(log, `${JSON.stringify(event)}\n`);
}

async function turn(): Promise<void> {
  const ticket = { ticketId: randomId(), runId: null, holder: `worker-${process.pid}`, leaseMs: ticketLeaseMs };
  const asked = { ...ticket, id: request.id, maxQueue: 100 };
  let queued = await store.queue(asked);
  say({
    what: "entered",
    ticketId: ticket.ticketId,
    line: (await store.line(request.id)).map((each) => each.ticketId),
  });
  // The one that is to die.
  if (rounds === 0) await new Promise(() => setInterval(() => undefined, 1_000));
  for (;;) {
    if (queued.answer !== "queued") throw new Error("the line is full");
    const { ahead, record } = queued;
    if (ahead === 0) {
      const attempt: ClaimRequest = {
        ...request,
        ...ticket,
        leaseMs: request.leaseMs,
        attemptId: randomId(),
        seen: record?.version ?? null,
      };
      const [result] = await store.claim([attempt]);
      if (result?.answer === "won") {
        const { token } = result;
        say({ what: "in", ticketId: ticket.ticketId, token });
        await pause(1);
        say({ what: "out", ticketId: ticket.ticketId, token });
        const ref = { id: request.id, attemptId: attempt.attemptId, token };
        const [settled] = await store.settle([{ ...ref, state: "released", payload: null }]);
        if (settled !== "settled") throw new Error(`the release was ${settled}`);
        return;
      }
    }
    await pause(10 * (1 + ahead) * (0.5 + Math.random() / 2));
    queued = await store.queue(asked);
  }
}

await store.health();
say({ what: "ready" });
while (rounds > 0 && !existsSync(start)) await pause(2);
if (rounds === 0) await turn();
for (let round = 0; round < rounds; round++) await turn();
await end();
