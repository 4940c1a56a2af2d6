import { accessSync, constants, existsSync, statfsSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { TwiceproofError } from "@twiceproof/core/store";
import { readOnly, sqliteCode } from "./errors.ts";

/** `f_type` of statfs(2) on Linux: file systems of other machines, whose locks and shared memory SQLite cannot rely on. */
const networkTypes: ReadonlyMap<number, string> = new Map([
  [0x6969, "NFS"],
  [0x517b, "SMB"],
  [0xfe534d42, "SMB2"],
  [0xff534d42, "CIFS"],
  [0x01021997, "9p"],
  [0x5346414f, "AFS"],
  [0x6b414653, "AFS"],
  [0x00c36400, "Ceph"],
]);

/** @throws TwiceproofError `STORE_NETWORK_PATH` */
export function refuseNetworkPath(path: string): void {
  const type = path.startsWith("\\\\") ? "a network share" : networkType(path);
  if (type === undefined) return;
  throw new TwiceproofError(
    "STORE_NETWORK_PATH",
    "The database file is on a network file system, where SQLite's locks do not hold.",
    { help: `${path} is on ${type}. Use a local disk, or PostgreSQL or MySQL for workers on several machines.` },
  );
}

/** Elsewhere than on Linux the number means something else. */
function networkType(path: string): string | undefined {
  if (process.platform !== "linux") return undefined;
  const existing = [path, dirname(path)].find((candidate) => existsSync(candidate));
  return existing === undefined ? undefined : networkTypes.get(statfsSync(existing).type >>> 0);
}

/** SQLite says "unable to open database file" to four different troubles. */
export function explainOpening(error: unknown, path: string): unknown {
  const folder = dirname(path);
  const code = sqliteCode(error);
  if (code === "SQLITE_NOTADB" || isFolder(path))
    return new TwiceproofError("STORE_NOT_A_DATABASE", "The file is not an SQLite database.", {
      cause: error,
      help: `Path: ${path}`,
    });
  if (!existsSync(folder))
    return new TwiceproofError("STORE_PATH_MISSING", "The folder of the database file does not exist.", {
      cause: error,
      help: `Create ${folder}, or mount it, first.`,
    });
  if (code === "SQLITE_READONLY" || (code === "SQLITE_CANTOPEN" && !isWritable(path)))
    return readOnly(error, `Path: ${path}. SQLite writes the file and, beside it, -wal and -shm.`);
  return error;
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}

function isWritable(path: string): boolean {
  try {
    accessSync(dirname(path), constants.W_OK);
    if (existsSync(path)) accessSync(path, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}
