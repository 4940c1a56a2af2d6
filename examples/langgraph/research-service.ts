import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { say } from "./processes.ts";

export type ServiceSaid =
  | { readonly say: "listening"; readonly url: string }
  | { readonly say: "billed"; readonly topic: string; readonly count: number };

/**
 * A research service in a process of its own. It bills every report that it is asked for; that is the only witness of
 * this demo.
 *
 *   POST /reports         bills, works while it is not delivering, and answers with the report
 *   GET  /bill?topic=…    what was billed for a topic
 *   PUT  /delivering      true: it answers all who wait, and from now on at once
 */
const billed: { readonly topic: string; readonly report: string }[] = [];
const waiting: (() => void)[] = [];
let isDelivering = false;

const server = createServer(async (request, response) => {
  const { pathname, searchParams } = new URL(request.url ?? "/", "http://localhost");
  switch (`${request.method} ${pathname}`) {
    case "POST /reports": {
      const topic = await text(request);
      const report = `Report ${billed.length + 1}: ${topic}`;
      billed.push({ topic, report });
      await say<ServiceSaid>({ say: "billed", topic, count: billOf(topic).length });
      if (!isDelivering) await new Promise<void>((resolve) => waiting.push(resolve));
      return void response.end(report);
    }
    case "GET /bill":
      return void response.end(JSON.stringify(billOf(searchParams.get("topic"))));
    case "PUT /delivering":
      isDelivering = (await text(request)) === "true";
      if (isDelivering) for (const resolve of waiting.splice(0)) resolve();
      return void response.end();
  }
  response.writeHead(404).end();
});

function billOf(topic: string | null): readonly string[] {
  return billed.filter((line) => line.topic === topic).map(({ report }) => report);
}

server.listen(0, "127.0.0.1", async () => {
  const { port } = server.address() as AddressInfo;
  await say<ServiceSaid>({ say: "listening", url: `http://127.0.0.1:${port}` });
});
process.once("disconnect", () => process.exit());
