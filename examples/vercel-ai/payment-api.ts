import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";
import { setTimeout as pause } from "node:timers/promises";
import type { Charge, Order } from "./lib/tools.ts";

/**
 * A payment API in a process of its own. It charges whenever it is asked to, and is the only witness of this example.
 *
 *   POST /charges            charges, always, and takes a moment
 *   GET  /charges?order=…    what was charged for an order
 */
const charges: (Charge & Order)[] = [];

const server = createServer(async (request, response) => {
  const { pathname, searchParams } = new URL(request.url ?? "/", "http://localhost");
  const answer = (status: number, body: unknown): void => {
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
  };

  switch (`${request.method} ${pathname}`) {
    case "POST /charges": {
      const order = (await json(request)) as Order;
      const charge = { id: `ch_${charges.length + 1}` };
      charges.push({ ...charge, ...order });
      await pause(300);
      return answer(201, charge);
    }
    case "GET /charges":
      return answer(
        200,
        charges.filter(({ orderId }) => orderId === searchParams.get("order")),
      );
  }
  answer(404, { error: "not found" });
});

server.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}`));
