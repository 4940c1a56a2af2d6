import { createTwiceproof, type Twiceproof } from "@twiceproof/core";
import { sqliteStore } from "@twiceproof/store-sqlite";
import { expect, onTestFinished, test, vi } from "vitest";
import { approved, post, postUntilStopped, user } from "./client.ts";
import type { PaymentApi } from "./payment-api.ts";
import type { Served } from "./processes.ts";
import type { Message, Post } from "./protocol.ts";
import { savedChat } from "./saved.ts";

/** A server with a chat whose tool charges, once that is approved. */
export interface Application {
  readonly url: string;
  /** One whose model fails. */
  readonly failing: string;
  /** One more, which is going to be stopped. */
  readonly start: () => Promise<Served>;
  readonly file: string;
  readonly payments: Omit<PaymentApi, "url">;
}

/** However a run of this server ends, its chat is saved and free then, and not before. */
export function endings(name: string, application: () => Application): void {
  test(`${name}: a run that finishes: who has read it finds the chat free, and saved`, async () => {
    const { app, chat, ask, holder } = await approvedChat("finishes");
    const { outputs } = await post(app.url, ask);
    expect(await holder()).toBe(null);
    expect(outputs).toEqual([{ id: (await app.payments.charges("finishes"))[0]?.id }]);
    expect(JSON.stringify(savedChat(app.file, chat))).toContain(JSON.stringify(outputs[0]));
  });

  test(`${name}: a run that nobody reads`, async () => {
    const { app, chat, ask, holder } = await approvedChat("unread");
    const response = await send(app.url, ask);
    await vi.waitFor(async () => expect(await holder()).toBe(null), bound);
    expect(JSON.stringify(savedChat(app.file, chat))).toContain("output-available");
    await response.body?.cancel();
  });

  test(`${name}: a page that is closed in mid-run, and one that watches it, which takes no lock`, async () => {
    const { app, chat, ask, holder } = await approvedChat("closed");
    const watch = (): Promise<Response> => fetch(`${app.url}/api/chat/${chat}/stream`);
    expect((await watch()).status).toBe(204);
    await app.payments.setBusy("closed", true);
    const page = new AbortController();
    const closed = send(app.url, ask, page.signal).then((response) => response.text());
    await app.payments.charged("closed", 1);
    page.abort();
    await expect(closed).rejects.toThrow("abort");
    const watched = await watch();
    expect(watched.status).toBe(200);
    expect((await holder())?.liveness).toBe("live");
    await app.payments.setBusy("closed", false);
    expect(await watched.text()).toContain("tool-output-available");
    await vi.waitFor(async () => expect(await holder()).toBe(null), bound);
    expect(JSON.stringify(savedChat(app.file, chat))).toContain("output-available");
    expect(await app.payments.charges("closed")).toHaveLength(1);
  });

  test(`5: ${name}: a run that is told to stop: its page gets the code, its call is recorded`, async () => {
    const { app, tp, chat, ask, holder } = await approvedChat("stopped");
    await app.payments.setBusy("stopped", true);
    const { reply, stopping } = postUntilStopped(app.url, ask);
    await app.payments.charged("stopped", 1);
    const { runId = "" } = (await holder()) ?? {};
    expect(await tp.threads.cancel(chat, { runId: `${runId}`, who: "ana", why: "pressed Stop" })).toBe("requested");
    await stopping;
    expect((await holder())?.state).toBe("stopping");
    await app.payments.setBusy("stopped", false);
    const { errors } = await reply;
    expect(errors.at(-1)).toMatch(/^RUN_CANCELLED: /);
    expect(await holder()).toBe(null);
    const { outputs } = await post(app.url, ask);
    const [receipt, ...more] = await app.payments.charges("stopped");
    expect(more).toEqual([]);
    expect(outputs).toEqual([{ id: receipt?.id }]);
  });

  test(`${name}: a server that is stopped in mid-run, whose page has left: it ends when the run has`, async () => {
    const { app, chat, ask, holder } = await approvedChat("deployed");
    const { url, stop } = await app.start();
    await app.payments.setBusy("deployed", true);
    const page = new AbortController();
    const closed = send(url, ask, page.signal).then((response) => response.text());
    await app.payments.charged("deployed", 1);
    page.abort();
    await expect(closed).rejects.toThrow("abort");
    const stopped = stop();
    await app.payments.setBusy("deployed", false);
    await stopped;
    expect(await holder()).toBe(null);
    expect(JSON.stringify(savedChat(app.file, chat))).toContain("output-available");
    expect(await app.payments.charges("deployed")).toHaveLength(1);
  });

  test(`${name}: a run whose model fails`, async () => {
    const { app, holder } = await opened("model");
    const ask: Post = { id: "chat-model", messages: [user("Charge order model, 42 dollars")], script: [] };
    const { errors } = await post(app.failing, ask);
    expect(errors).toHaveLength(1);
    expect(await holder()).toBe(null);
  });

  test(`${name}: a handler that throws`, async () => {
    const { app, holder } = await opened("throws");
    const none = null as unknown as Message[];
    const response = await send(app.url, { id: "chat-throws", messages: none, script: [] });
    expect(response.status).toBe(500);
    await vi.waitFor(async () => expect(await holder()).toBe(null), bound);
  });

  async function opened(order: string) {
    const app = application();
    const chat = `chat-${order}`;
    const tp: Twiceproof = createTwiceproof({ store: sqliteStore(app.file) });
    onTestFinished(() => tp.close());
    return { app, chat, tp, holder: () => tp.threads.get(chat) };
  }

  /** Somebody is about to post the approval. */
  async function approvedChat(order: string) {
    const place = await opened(order);
    const charge = { call: "call_1", tool: "charge", input: { orderId: order, cents: 4200 } } as const;
    const messages = [user(`Charge order ${order}, 42 dollars`)];
    const asked = await post(place.app.url, { id: place.chat, messages, script: [charge], approval: true });
    const script = [{ text: "Done." }];
    const ask: Post = { id: place.chat, messages: [...messages, approved(asked)], script, approval: true };
    return { ...place, ask };
  }
}

const bound = { timeout: 60_000, interval: 20 };

function send(server: string, body: Post, signal?: AbortSignal): Promise<Response> {
  const headers = { "content-type": "application/json" };
  const init = { method: "POST", headers, body: JSON.stringify(body), signal: signal ?? null };
  return fetch(`${server}/api/chat`, init);
}
