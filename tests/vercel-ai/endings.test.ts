import { join } from "node:path";
import { beforeAll, describe } from "vitest";
import { endings } from "./support/endings.ts";
import { folder, startHono } from "./support/example.ts";
import { openPaymentApi, type PaymentApi } from "./support/payment-api.ts";
import { openPlace, type Place } from "./support/place.ts";
import { atEnd } from "./support/processes.ts";

describe("however a run ends", () => {
  const onEnd = atEnd();
  let place: Place;
  let node: string;
  beforeAll(async () => {
    place = await openPlace("ai-v7", onEnd);
    node = (await place.start(onEnd)).url;
  });
  const more = () => place.start(onEnd);
  endings("node:http", () => ({ url: node, failing: node, start: more, file: place.file, payments: place }));

  const file = join(folder(onEnd), "app.db");
  let payments: PaymentApi;
  let hono: string;
  let failing: string;
  const start = () => startHono(onEnd, { DATABASE: file, PAYMENT_API: payments.url });
  beforeAll(async () => {
    payments = await openPaymentApi(onEnd);
    const env = { DATABASE: file, PAYMENT_API: payments.url, AI_MODEL: "none/none" };
    const servers = [start(), startHono(onEnd, env)];
    [hono, failing] = (await Promise.all(servers)).map(({ url }) => url) as [string, string];
  });
  endings("Hono", () => ({ url: hono, failing, start, file, payments }));
});
