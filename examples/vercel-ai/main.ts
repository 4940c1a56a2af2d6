import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Charge } from "./lib/tools.ts";
import { run, type Server, serve } from "./processes.ts";
import { approve, receipt, send } from "./tab.ts";

interface Play {
  readonly title: string;
  readonly server: readonly string[];
  readonly guard: "on" | "off";
  /** Charges that have to come out of three approvals. */
  readonly charges: number;
}

const next = createRequire(import.meta.url).resolve("next/dist/bin/next");
const nextServer = [next, "start", "--hostname", "127.0.0.1", "--port", "0"];
const plays: readonly Play[] = [
  { title: "Next.js, without Twiceproof", server: nextServer, guard: "off", charges: 3 },
  { title: "Next.js, with Twiceproof", server: nextServer, guard: "on", charges: 1 },
  {
    title: "Hono, with Twiceproof",
    server: ["--disable-warning=ExperimentalWarning", "hono.ts"],
    guard: "on",
    charges: 1,
  },
];

const directory = mkdtempSync(join(tmpdir(), "twiceproof-vercel-ai-"));
process.once("exit", () => rmSync(directory, { recursive: true, force: true, maxRetries: 10 }));

console.log("Two servers on one SQLite file. Two tabs approve one charge at once, a stale tab approves it later.");
console.log("Building the Next.js application …");
await run("next build", [next, "build"]);
const api = await serve("the payment API", ["payment-api.ts"]);
const table = [`${" ".repeat(34)}approvals posted   charges counted`];
const wrong: string[] = [];
for (const [index, play] of plays.entries()) {
  const charges = await counted(play, `order-${index + 1}`, join(directory, `app-${index + 1}.db`));
  table.push(`${play.title.padEnd(34)}${"3".padStart(16)}${String(charges).padStart(18)}`);
  if (charges !== play.charges) wrong.push(`${play.title}: ${play.charges} expected`);
}
await api.stop();

console.log(`\n${table.join("\n")}\n`);
console.log(wrong.length === 0 ? "All as expected." : `WRONG\n${wrong.join("\n")}`);
process.exitCode = wrong.length === 0 ? 0 : 1;

/** Three approvals of one charge; how many charges the payment API counted. */
async function counted({ title, server, guard }: Play, order: string, database: string): Promise<number> {
  console.log(title);
  const environment = { GUARD: guard, DATABASE: database, PAYMENT_API: api.url };
  const servers = await Promise.all([serve(title, server, environment), serve(title, server, environment)]);
  const [one, two] = servers.map(({ url }) => url) as [string, string];
  const id = `chat-of-${order}`;
  const asked = await send(one, id, [
    { id: "message-1", role: "user", parts: [{ type: "text", text: `Charge order ${order}, 42 dollars` }] },
  ]);
  const approved = approve(asked);
  const atOnce = await Promise.all([send(one, id, approved), send(two, id, approved)]);
  const later = await send(two, id, approved);
  const receipts = new Set([...atOnce, later].map(receipt));
  console.log(`  the three tabs show ${[...receipts].join(", ")}`);
  await Promise.all(servers.map((it: Server) => it.stop()));
  const response = await fetch(`${api.url}/charges?order=${order}`);
  return ((await response.json()) as Charge[]).length;
}
