import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { createTwiceproof, type RunOptions } from "@twiceproof/core";
import { type Agent, guardedAgent, plainAgent } from "./agent.ts";
import { openDatabases } from "./databases.ts";
import { lockInDatabase, lockInProcess, noLock } from "./guards.ts";
import { answerRun, type Route } from "./run.ts";

const { saver, store } = openDatabases();
const tp = createTwiceproof({ store });
const plain = plainAgent(saver);
const guarded = guardedAgent(saver, tp);
const leaseMs = Number(process.env.LEASE_MS ?? 30_000);

function withTwiceproof(onBusy: RunOptions["onBusy"], agent: Agent = guarded): Route {
  return { agent, guard: lockInDatabase(tp, { onBusy, leaseMs }) };
}

/** An application has one of these. */
const routes = new Map<string | undefined, Route>([
  ["/no-lock", { agent: plain, guard: noLock }],
  ["/lock-in-process", { agent: plain, guard: lockInProcess() }],
  // Its checkpoints know nothing of the lock.
  ["/lease-alone", withTwiceproof("wait", plain)],
  ["/reject", withTwiceproof("reject")],
  ["/wait", withTwiceproof("wait")],
  ["/interrupt", withTwiceproof("interrupt")],
]);

const server = createServer(async (request, response) => {
  const route = request.method === "POST" ? routes.get(request.url) : undefined;
  if (route === undefined) return void response.writeHead(404).end();
  await answerRun(request, response, route);
});

server.listen(Number(process.env.PORT ?? 0), "127.0.0.1", () => {
  const { port } = server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}`;
  if (process.send === undefined) console.log(`POST ${url}/wait`);
  else process.send(url);
});
process.once("disconnect", () => process.exit());
