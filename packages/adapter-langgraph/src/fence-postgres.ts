import type { BaseCheckpointSaver } from "@langchain/langgraph";
import type { SaverFence, TransactionCheck } from "./fence.ts";
import { forwarding } from "./forwarding.ts";

interface Client {
  query(text: unknown, values?: unknown): Promise<{ readonly rows: readonly unknown[] }>;
  release(broken?: unknown): unknown;
  on(event: "error", listener: () => void): unknown;
  off(event: "error", listener: () => void): unknown;
}

interface Pool {
  connect(): Promise<Client>;
  query: Client["query"];
}

/**
 * For a PostgresSaver: it takes a client of its pool, says `BEGIN`, and writes. Undefined for others. Tests of each
 * supported version hold it to that.
 */
export function postgresFence(saver: BaseCheckpointSaver): SaverFence | undefined {
  const pool = (saver as { readonly pool?: Partial<Pool> }).pool;
  if (typeof pool?.connect !== "function" || typeof pool.query !== "function") return undefined;
  return {
    async finds({ text, values }) {
      try {
        return (await (pool as Pool).query(text, [...values])).rows.length > 0;
      } catch (error) {
        if (isNotThere(error)) return false;
        throw error;
      }
    },
    view: (check) => Object.create(saver, { pool: { value: checkedPool(pool as Pool, check) } }),
  };
}

/** SQLSTATE: no such schema, table or function, no right to them, or a statement of another database's. */
function isNotThere(error: unknown): boolean {
  const { code } = error as { readonly code?: unknown };
  return typeof code === "string" && (code.startsWith("42") || code === "3F000");
}

function checkedPool(pool: Pool, check: TransactionCheck): Pool {
  return forwarding(pool, { connect: async () => checkedClient(await pool.connect(), check) });
}

/**
 * How long the server lets the transaction stand still, as that of a frozen worker does, before it ends it: a takeover
 * waits for it, and for no longer than core asks a store.
 */
const standstillMs = 5_000;

const ignore = (): void => undefined;

function checkedClient(client: Client, { statement, take }: TransactionCheck): Client {
  // What the server says when it hangs up ends the process where nobody listens, and the pool does so for idle clients alone.
  client.on("error", ignore);
  return forwarding(client, {
    async query(text, values) {
      const isBegin = typeof text === "string" && /^\s*(begin|start\s+transaction)\b/i.test(text);
      if (!isBegin) return await client.query(text, values);
      const [begun] = [
        await client.query(`${text}; set local idle_in_transaction_session_timeout = ${standstillMs}`),
      ].flat();
      const { rows } = await client.query(statement.text, [...statement.values]);
      take(rows.length > 0);
      return begun as Awaited<ReturnType<Client["query"]>>;
    },
    release(broken) {
      client.off("error", ignore);
      return client.release(broken);
    },
  });
}
