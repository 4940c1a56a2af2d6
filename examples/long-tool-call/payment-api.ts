import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";
import type { Charge, Order } from "./charge.ts";
import { say } from "./processes.ts";

export type ApiSaid =
  | { readonly say: "listening"; readonly url: string }
  | { readonly say: "charged"; readonly orderId: string; readonly count: number };

/**
 * A payment API in a process of its own. It counts every charge that it is asked for; that is the only witness of this
 * demo. It takes an Idempotency-Key and ignores it: many APIs do, or forget the key after a while.
 *
 *   POST /charges            charges, always
 *   GET  /charges?order=…    what was charged for an order
 *   PUT  /busy               true: it goes on charging, but answers no charge and no look-up until it is told false
 */
const charges: Charge[] = [];
const unanswered: (() => void)[] = [];
let busy = false;

const server = createServer(async (request, response) => {
  const { pathname, searchParams } = new URL(request.url ?? "/", "http://localhost");
  const answer = (status: number, body: unknown): void => {
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
  };

  switch (`${request.method} ${pathname}`) {
    case "POST /charges": {
      const { orderId, cents } = (await json(request)) as Order;
      const charge = { id: `ch_${charges.length + 1}`, orderId, cents };
      charges.push(charge);
      await say<ApiSaid>({ say: "charged", orderId, count: chargesOf(orderId).length });
      if (busy) await new Promise<void>((resolve) => unanswered.push(resolve));
      return answer(201, charge);
    }
    case "GET /charges":
      if (busy) return answer(503, { error: "busy" });
      return answer(200, chargesOf(searchParams.get("order")));
    case "PUT /busy":
      busy = (await json(request)) === true;
      if (!busy) for (const resolve of unanswered.splice(0)) resolve();
      return answer(200, { busy });
  }
  answer(404, { error: "not found" });
});

function chargesOf(orderId: string | null): readonly Charge[] {
  return charges.filter((charge) => charge.orderId === orderId);
}

server.listen(0, "127.0.0.1", async () => {
  const { port } = server.address() as AddressInfo;
  await say<ApiSaid>({ say: "listening", url: `http://127.0.0.1:${port}` });
});
process.once("disconnect", () => process.exit());
