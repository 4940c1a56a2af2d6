import { chownSync, mkdtempSync, realpathSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isReadable, serverAccount } from "./run.ts";

/** A new temporary directory that belongs to the servers' account alone. */
export function makeDirectory(name: string): string {
  const account = serverAccount();
  // Root's own TMPDIR may be closed to it.
  const parent = isReadable(tmpdir(), account) ? tmpdir() : "/tmp";
  const directory = realpathSync(mkdtempSync(join(parent, `twiceproof-${name}-`)));
  if (account.uid !== undefined && account.gid !== undefined) chownSync(directory, account.uid, account.gid);
  return directory;
}
