import { cpSync } from "node:fs";
import { join } from "node:path";
import { isReadable, serverAccount } from "./run.ts";

/**
 * This folder, or a copy of it at `copy` when the servers' account cannot come to its `file`: root's tests may be in a
 * folder that only root may enter.
 */
export function readableTree(folder: string, file: string, copy: string): string {
  if (isReadable(join(folder, file), serverAccount())) return folder;
  cpSync(folder, copy, { recursive: true, verbatimSymlinks: true });
  return copy;
}
