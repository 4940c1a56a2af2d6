import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { folder } from "./example.ts";
import { type OnEnd, type Served, serve } from "./processes.ts";
import type { AiVersion, ServerSetup } from "./protocol.ts";

const withinMs = 60_000;
const script = (name: string): string => fileURLToPath(new URL(name, import.meta.url));

export interface Place {
  /** One more server, on the database that all share. One that is going to die should have a short lease. */
  start(onEnd: OnEnd, leaseMs?: number): Promise<Served>;
  /** What the payment API charged for an order. */
  charges(order: string): Promise<readonly { readonly id: string }[]>;
  /** Resolves when so many charges were counted. */
  charged(order: string, count: number): Promise<void>;
  /** While it is busy, the payment API goes on charging for this order, and answers nobody. */
  setBusy(order: string, busy: boolean): Promise<void>;
}

export async function openPlace(version: AiVersion, onEnd: OnEnd): Promise<Place> {
  const file = join(folder(onEnd), "app.db");
  const { url } = await serve([script("payments.ts")], onEnd);

  async function charges(order: string): Promise<readonly { readonly id: string }[]> {
    const response = await fetch(`${url}/charges?order=${order}`);
    return (await response.json()) as { id: string }[];
  }

  return {
    charges,
    start(end, leaseMs = 30_000) {
      const setup: ServerSetup = { version, file, payments: url, leaseMs };
      return serve(["--conditions=@twiceproof/source", script("server.ts"), JSON.stringify(setup)], end);
    },
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
