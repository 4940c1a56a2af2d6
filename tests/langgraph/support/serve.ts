import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { nodeEnv, nodeFlags } from "./spawn.ts";

/** A dev server that keeps its state in this folder, as soon as it listens. */
export async function startServer(folder: string): Promise<{ readonly url: string; kill(): Promise<void> }> {
  const file = fileURLToPath(new URL("dev-server.ts", import.meta.url));
  const child = spawn(process.execPath, [...nodeFlags, file], {
    // It logs every request, at length.
    stdio: ["ignore", "ignore", "inherit", "ipc"],
    env: { ...nodeEnv, TWICEPROOF_TEST_FOLDER: folder },
  });
  const ended = once(child, "exit");
  const [said] = await Promise.race([
    once(child, "message"),
    ended.then(() => Promise.reject(new Error("the dev server ended before it listened"))),
  ]);
  return {
    url: (said as { readonly url: string }).url,
    async kill() {
      child.kill("SIGKILL");
      await ended;
    },
  };
}
