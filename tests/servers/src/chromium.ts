import { aptInstall, aptObstacle } from "./apt.ts";
import { findProgram } from "./programs.ts";

const names = ["chromium", "chromium-browser", "google-chrome-stable", "google-chrome"];

function installed(): string | undefined {
  return process.env.CHROMIUM_PATH ?? names.map((name) => findProgram(name)).find(Boolean);
}

/** The path of a Chromium: CHROMIUM_PATH, an installed one, or Debian's package. Throws one sentence that says how to get it. */
export async function findChromium(): Promise<string> {
  const found = installed();
  if (found !== undefined) return found;
  let obstacle = aptObstacle();
  if (obstacle === undefined) {
    try {
      await aptInstall("chromium");
    } catch (error) {
      obstacle = (error as Error).message.replaceAll("\n", " ");
    }
  }
  const path = installed();
  if (path !== undefined) return path;
  throw new Error(
    `No Chromium (${obstacle ?? "apt-get installed none"}): install it, set CHROMIUM_PATH, or run this as root on Debian.`,
  );
}
