import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { createTwiceproof } from "@twiceproof/core";
import { sqliteStore } from "@twiceproof/store-sqlite";
import { expect, vi } from "vitest";
import { folder } from "./example.ts";
import { openPaymentApi, type PaymentApi } from "./payment-api.ts";
import { type OnEnd, type Served, serve } from "./processes.ts";
import type { AiVersion, Message, ServerSetup } from "./protocol.ts";
import { savedChat } from "./saved.ts";

export interface Place extends Omit<PaymentApi, "url"> {
  /** The database that all servers share. */
  readonly file: string;
  /** One more server. One that is going to die should have a short lease. */
  start(onEnd: OnEnd, leaseMs?: number): Promise<Served>;
  /** The chat as it was saved. */
  saved(chat: string): readonly Message[];
  /** Resolves when so many wait for the chat. */
  queued(chat: string, count: number): Promise<void>;
}

export async function openPlace(version: AiVersion, onEnd: OnEnd): Promise<Place> {
  const file = join(folder(onEnd), "app.db");
  const { url: payments, ...api } = await openPaymentApi(onEnd);
  const script = fileURLToPath(new URL("server.ts", import.meta.url));
  const tp = createTwiceproof({ store: sqliteStore(file) });
  onEnd(() => tp.close());
  const bound = { timeout: 60_000, interval: 20 };
  return {
    ...api,
    file,
    saved: (chat) => savedChat(file, chat),
    queued: (chat, count) =>
      vi.waitFor(async () => expect(await tp.threads.get(chat)).toMatchObject({ queueDepth: count }), bound),
    start(end, leaseMs = 30_000) {
      const setup: ServerSetup = { version, file, payments, leaseMs };
      return serve(["--conditions=@twiceproof/source", script, JSON.stringify(setup)], end);
    },
  };
}
