import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { type OnEnd, serve } from "./processes.ts";

const withinMs = 60_000;

export interface PaymentApi {
  readonly url: string;
  /** What it charged for an order. */
  charges(order: string): Promise<readonly { readonly id: string }[]>;
  /** Resolves when so many charges were counted. */
  charged(order: string, count: number): Promise<void>;
  /** While it is busy, it goes on charging for this order, and answers nobody. */
  setBusy(order: string, busy: boolean): Promise<void>;
}

export async function openPaymentApi(onEnd: OnEnd): Promise<PaymentApi> {
  const { url } = await serve([fileURLToPath(new URL("payments.ts", import.meta.url))], onEnd);

  async function charges(order: string): Promise<readonly { readonly id: string }[]> {
    const response = await fetch(`${url}/charges?order=${order}`);
    return (await response.json()) as { id: string }[];
  }

  return {
    url,
    charges,
    async charged(order, count) {
      const start = performance.now();
      while ((await charges(order)).length < count) {
        if (performance.now() - start > withinMs) throw new Error(`waited ${withinMs} ms in vain for ${count} charges`);
        await pause(20);
      }
    },
    async setBusy(order, busy) {
      await fetch(`${url}/busy?order=${order}`, { method: "PUT", body: JSON.stringify(busy) });
    },
  };
}
