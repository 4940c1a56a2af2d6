import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type BaseCheckpointSaver, MemorySaver } from "@langchain/langgraph";
import { PostgresSaver } from "@langchain/langgraph-checkpoint-postgres";
import { SqliteSaver } from "@langchain/langgraph-checkpoint-sqlite";
import { onTestFinished } from "vitest";

export function memorySaver(): BaseCheckpointSaver {
  return new MemorySaver();
}

export function sqliteSaver(): BaseCheckpointSaver {
  const folder = mkdtempSync(join(tmpdir(), "twiceproof-"));
  const saver = SqliteSaver.fromConnString(join(folder, "checkpoints.db"));
  onTestFinished(() => {
    saver.db.close();
    rmSync(folder, { recursive: true, force: true });
  });
  return saver as unknown as BaseCheckpointSaver;
}

let schemas = 0;

export async function postgresSaver(url: string): Promise<BaseCheckpointSaver> {
  const saver = PostgresSaver.fromConnString(url, { schema: `checkpoints_${process.pid}_${++schemas}` });
  await saver.setup();
  onTestFinished(() => saver.end());
  return saver as unknown as BaseCheckpointSaver;
}
