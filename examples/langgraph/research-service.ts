import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { say } from "./processes.ts";

export type ServiceSaid =
  | { readonly say: "listening"; readonly url: string }
  | { readonly say: "billed"; readonly bill: number; readonly count: number };

/**
 * A research service in a process of its own. It bills every report that it is asked for; that is the only witness of
 * this demo.
 *
 *   POST /bills       begins a new bill, and delivers nothing until it is told to
 *   GET  /bill        the reports on it
 *   POST /reports     puts a report on the bill, works for as long as it delivers nothing, and answers with the report
 *   POST /deliveries  answers all who wait, and from now on at once
 */
let bill: string[] = [];
let bills = 0;
let isDelivering = false;
const waiting: (() => void)[] = [];

const server = createServer(async (request, response) => {
  switch (`${request.method} ${request.url}`) {
    case "POST /bills":
      bill = [];
      isDelivering = false;
      return void response.end(String(++bills));
    case "GET /bill":
      return void response.end(JSON.stringify(bill));
    case "POST /reports": {
      const report = `Report ${bills}.${bill.length + 1} on ${await text(request)}`;
      bill.push(report);
      await say<ServiceSaid>({ say: "billed", bill: bills, count: bill.length });
      if (!isDelivering) await new Promise<void>((resolve) => waiting.push(resolve));
      return void response.end(report);
    }
    case "POST /deliveries":
      isDelivering = true;
      for (const resolve of waiting.splice(0)) resolve();
      return void response.end();
  }
  response.writeHead(404).end();
});

server.listen(0, "127.0.0.1", async () => {
  const { port } = server.address() as AddressInfo;
  await say<ServiceSaid>({ say: "listening", url: `http://127.0.0.1:${port}` });
});
process.once("disconnect", () => process.exit());
