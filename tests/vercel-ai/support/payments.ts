// A payment API in a process of its own: the witness of these tests.
//   POST /charges           charges, always, also while it is busy
//   GET  /charges?order=…   what was charged for an order
//   PUT  /busy?order=…      true: it goes on charging for the order, and answers nobody until it is told false
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";
import { setTimeout as pause } from "node:timers/promises";

interface Order {
  readonly orderId: string;
  readonly cents: number;
}

const charges: (Order & { readonly id: string })[] = [];
const busy = new Map<string, PromiseWithResolvers<void>>();

const server = createServer(async (request, response) => {
  const { pathname, searchParams } = new URL(request.url ?? "/", "http://localhost");
  const asked = searchParams.get("order") ?? "";
  const answer = (body: unknown): void => {
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(body));
  };
  switch (`${request.method} ${pathname}`) {
    case "POST /charges": {
      const order = (await json(request)) as Order;
      const charge = { id: `ch_${charges.length + 1}`, ...order };
      charges.push(charge);
      // Long enough for whoever races to arrive.
      await (busy.get(order.orderId)?.promise ?? pause(100));
      return answer({ id: charge.id });
    }
    case "GET /charges":
      return answer(charges.filter(({ orderId }) => orderId === asked));
    case "PUT /busy":
      if ((await json(request)) === true) busy.set(asked, Promise.withResolvers());
      else {
        busy.get(asked)?.resolve();
        busy.delete(asked);
      }
      return answer({});
  }
  response.writeHead(404).end();
});

server.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}`));
