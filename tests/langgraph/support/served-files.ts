import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** One line, the topic, for each time that the tool did its work. */
export function workFile(folder: string): string {
  return join(folder, "work");
}

/** One line, the thread, for each time that a claim met somebody else's. */
export function metFile(folder: string): string {
  return join(folder, "met");
}

export function readLines(file: string): readonly string[] {
  return existsSync(file) ? readFileSync(file, "utf8").split("\n").filter(Boolean) : [];
}
