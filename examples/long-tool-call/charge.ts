import { defineEffect, done, unknown } from "@twiceproof/core";
import { z } from "zod";

const orderInput = z.object({ orderId: z.string(), cents: z.number().int().positive() });

export type Order = z.infer<typeof orderInput>;

export interface Charge {
  readonly id: string;
  readonly orderId: string;
  readonly cents: number;
}

/** The tool, as Twiceproof runs it: this is all that a user of the library writes. */
export const charge = defineEffect({
  name: "charge",
  input: orderInput,
  // One order is paid once, whoever asks, and however often.
  key: ({ orderId }) => `order:${orderId}`,
  run: (order, { idempotencyKey, signal }) => postCharge(order, idempotencyKey, signal),
  // Asked when a worker died half-way. An error, like an answer that proves nothing, leaves the doubt as it is.
  reconcile: async ({ orderId }, { signal }) => {
    const [found] = await findCharges(orderId, signal);
    return found ? done(found) : unknown();
  },
  // Short, so that the demo is. By default a silent worker is believed for 30 s, and so long does a second caller wait.
  leaseMs: 3_000,
  waitMs: 250,
});

/** The same tool without Twiceproof. It does what it can, and sends a key: this API, like many, ignores it. */
export async function postCharge(order: Order, idempotencyKey: string, signal?: AbortSignal): Promise<Charge> {
  const response = await fetch(chargesUrl(), {
    method: "POST",
    headers: { "content-type": "application/json", "idempotency-key": idempotencyKey },
    body: JSON.stringify(order),
    signal: signal ?? null,
  });
  return (await ok(response).json()) as Charge;
}

export async function findCharges(orderId: string, signal?: AbortSignal): Promise<readonly Charge[]> {
  const response = await fetch(`${chargesUrl()}?order=${encodeURIComponent(orderId)}`, { signal: signal ?? null });
  return (await ok(response).json()) as Charge[];
}

function chargesUrl(): string {
  return `${process.env.PAYMENT_API}/charges`;
}

function ok(response: Response): Response {
  if (!response.ok) throw new Error(`The payment API answered ${response.status}.`);
  return response;
}
