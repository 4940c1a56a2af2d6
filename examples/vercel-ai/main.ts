import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Charge } from "./lib/tools.ts";
import { run, serve } from "./processes.ts";
import { approve, receipt, send } from "./tab.ts";

interface Play {
  readonly title: string;
  /** What Node runs, twice. */
  readonly server: readonly string[];
  readonly guard: "on" | "off";
  /** Charges that have to come out of three approvals, each with a receipt of its own. */
  readonly charges: number;
}

interface Outcome {
  /** Counted by the payment API. */
  readonly charges: number;
  /** What the three tabs show. */
  readonly receipts: ReadonlySet<string | undefined>;
}

const next = createRequire(import.meta.url).resolve("next/dist/bin/next");
const nextServer = [next, "start", "--hostname", "127.0.0.1", "--port", "0"];
const honoServer = ["--disable-warning=ExperimentalWarning", "hono.ts"];
const plays: readonly Play[] = [
  { title: "Next.js, without Twiceproof", server: nextServer, guard: "off", charges: 3 },
  { title: "Next.js, with Twiceproof", server: nextServer, guard: "on", charges: 1 },
  { title: "Hono, with Twiceproof", server: honoServer, guard: "on", charges: 1 },
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
  const { charges, receipts } = await played(play, `order-${index + 1}`, join(directory, `app-${index + 1}.db`));
  console.log(`${play.title}: the tabs show ${[...receipts].join(", ")}`);
  table.push(`${play.title.padEnd(34)}${"3".padStart(16)}${String(charges).padStart(18)}`);
  if (charges !== play.charges || receipts.size !== play.charges) wrong.push(`${play.title}: ${play.charges} expected`);
}
await api.stop();

console.log(`\n${table.join("\n")}\n`);
console.log(wrong.length === 0 ? "All as expected." : `WRONG\n${wrong.join("\n")}`);
process.exitCode = wrong.length === 0 ? 0 : 1;

async function played({ title, server, guard }: Play, order: string, database: string): Promise<Outcome> {
  const environment = { GUARD: guard, DATABASE: database, PAYMENT_API: api.url };
  const servers = await Promise.all([serve(title, server, environment), serve(title, server, environment)]);
  const [one, two] = servers.map(({ url }) => url) as [string, string];

  const id = `chat-of-${order}`;
  const text = `Charge order ${order}, 42 dollars`;
  const asked = await send(one, id, [{ id: "message-1", role: "user", parts: [{ type: "text", text }] }]);
  // Three tabs show the question. Somebody presses Approve in two of them at once, and in the third one later.
  const approved = approve(asked);
  const tabs = await Promise.all([send(one, id, approved), send(two, id, approved)]);
  tabs.push(await send(two, id, approved));

  await Promise.all(servers.map((each) => each.stop()));
  const response = await fetch(`${api.url}/charges?order=${order}`);
  const charges = (await response.json()) as readonly Charge[];
  return { charges: charges.length, receipts: new Set(tabs.map(receipt)) };
}
