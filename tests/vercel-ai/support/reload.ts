import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { example } from "./example.ts";
import type { OnEnd } from "./processes.ts";

const withinMs = 60_000;

export interface Seen {
  readonly version: number;
  readonly pid: number;
  /** Living ones, as the server counts them. */
  readonly timers: number;
  readonly resources: readonly string[];
  /** Open files of all kinds, from outside. */
  readonly files: number;
  readonly sockets: number;
  /** Those that are the database's. */
  readonly database: readonly string[];
}

/** A route that says what the server's process holds. */
const probe = `
import { version } from "../../lib/app.ts";
export const dynamic = "force-dynamic";
export function GET() {
  const resources = process.getActiveResourcesInfo();
  return Response.json({ version, pid: process.pid, timers: globalThis.livingTimers(), resources });
}
`;

/** The application in a folder of its own that may be written to, beside the packages that it finds. */
export function copyOfExample(onEnd: OnEnd): string {
  const copy = mkdtempSync(join(example, ".hot-"));
  onEnd(() => rmSync(copy, { recursive: true, force: true, maxRetries: 10 }));
  for (const name of ["app", "lib", "next.config.ts", "package.json"])
    cpSync(join(example, name), join(copy, name), { recursive: true });
  writeFileSync(join(copy, "tsconfig.json"), `{ "extends": "../tsconfig.json" }`);
  mkdirSync(join(copy, "app/probe"));
  writeFileSync(join(copy, "app/probe/route.ts"), probe);
  setVersion(copy, 0);
  return copy;
}

/** A module that the route imports changes, so that Next loads both again. */
function setVersion(copy: string, version: number): void {
  const file = join(copy, "lib/app.ts");
  const source = readFileSync(file, "utf8").replace(/\nexport const version = .*/, "");
  writeFileSync(file, `${source}\nexport const version = ${version};\n`);
}

/** Changes the application, and resolves when the server has loaded it and answered a chat. */
export async function reload(copy: string, url: string, version: number): Promise<void> {
  setVersion(copy, version);
  const start = performance.now();
  while ((await ask(url)).version !== version) {
    if (performance.now() - start > withinMs) throw new Error(`waited ${withinMs} ms in vain for reload ${version}`);
    await pause(50);
  }
  const text = `Charge order hot-${version}, 42 dollars`;
  const response = await fetch(`${url}/api/chat`, {
    method: "POST",
    headers: { "content-type": "application/json", connection: "close" },
    body: JSON.stringify({
      id: `chat-${version}`,
      messages: [{ id: "message-1", role: "user", parts: [{ type: "text", text }] }],
    }),
  });
  const reply = await response.text();
  if (!reply.includes("tool-approval-request")) throw new Error(`the chat answered ${response.status}: ${reply}`);
}

export async function look(url: string): Promise<Seen> {
  const probe = await ask(url);
  const targets = readdirSync(`/proc/${probe.pid}/fd`).flatMap((fd) => {
    try {
      return readlinkSync(`/proc/${probe.pid}/fd/${fd}`);
    } catch {
      return []; // It was closed while we looked.
    }
  });
  return {
    ...probe,
    files: targets.length,
    sockets: targets.filter((it) => it.startsWith("socket:")).length,
    database: targets.filter((it) => it.includes("app.db")).sort(),
  };
}

async function ask(url: string): Promise<Pick<Seen, "version" | "pid" | "timers" | "resources">> {
  const response = await fetch(`${url}/probe`, { headers: { connection: "close" } });
  return (await response.json()) as Seen;
}
