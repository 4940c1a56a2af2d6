import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type BaseCheckpointSaver, MemorySaver } from "@langchain/langgraph";
import { PostgresSaver } from "@langchain/langgraph-checkpoint-postgres";
import { SqliteSaver } from "@langchain/langgraph-checkpoint-sqlite";
import { createTwiceproof, memoryStore } from "@twiceproof/core";
import { postgresStore } from "@twiceproof/store-postgres";
import { sqliteStore } from "@twiceproof/store-sqlite";
import { createDatabase } from "@twiceproof/test-servers";
import { sharedServer } from "@twiceproof/test-servers/vitest";
import { Pool } from "pg";
import * as vitest from "vitest";
import { guardCheckpointer } from "../../../src/index.ts";

/** The suite that LangGraph publishes for checkpointers. It finds its runner on the global object. */
const { describe, it, expect, beforeAll, beforeEach, afterAll, afterEach } = vitest;
Object.assign(globalThis, { describe, it, test: it, expect, beforeAll, beforeEach, afterAll, afterEach });
const { deltaChannelHistoryTests, validate } = await import("@langchain/langgraph-checkpoint-validation");

type Initializer = Parameters<typeof validate>[0];
type Saver = Awaited<ReturnType<Initializer["createCheckpointer"]>>;

/** The names are those by which the suite knows what a saver leaves out by itself. */
function suite(checkpointerName: string, open: () => Promise<Opened>): void {
  const opened = new WeakMap<object, Opened>();
  const initializer: Initializer = {
    checkpointerName,
    async createCheckpointer() {
      const made = await open();
      opened.set(made.saver, made);
      return made.saver as unknown as Saver;
    },
    destroyCheckpointer: async (saver) => await opened.get(saver)?.close(),
  };
  describe(`a guarded ${checkpointerName}`, () => {
    validate(initializer);
    deltaChannelHistoryTests(initializer);
  });
}

interface Opened {
  readonly saver: BaseCheckpointSaver;
  close(): Promise<void>;
}

suite("MemorySaver", async () => ({
  saver: guardCheckpointer(new MemorySaver(), { tp: createTwiceproof({ store: memoryStore() }) }),
  close: async () => undefined,
}));

suite("@langchain/langgraph-checkpoint-sqlite", async () => {
  const folder = mkdtempSync(join(tmpdir(), "twiceproof-"));
  const saver = SqliteSaver.fromConnString(join(folder, "checkpoints.db"));
  const tp = createTwiceproof({ store: sqliteStore(saver.db) });
  return {
    saver: guardCheckpointer(saver as unknown as BaseCheckpointSaver, { tp }),
    async close() {
      await tp.close();
      saver.db.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
});

const database = await createDatabase(sharedServer("postgres").url);
const pool = new Pool({ connectionString: database.url });
const tp = createTwiceproof({ store: postgresStore(pool) });
await tp.store.migrate();
afterAll(async () => {
  await tp.close();
  await pool.end();
  await database.drop();
});
let schemas = 0;

suite("@langchain/langgraph-checkpoint-postgres", async () => {
  const saver = new PostgresSaver(pool, undefined, { schema: `checkpoints_${++schemas}` });
  await saver.setup();
  return { saver: guardCheckpointer(saver as unknown as BaseCheckpointSaver, { tp }), close: async () => undefined };
});
