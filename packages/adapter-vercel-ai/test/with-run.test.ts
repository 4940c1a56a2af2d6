import { type ChatRunOptions, withRun } from "@twiceproof/adapter-vercel-ai";
import type { Twiceproof } from "@twiceproof/core";
import { describe, expect, it } from "vitest";
import { gate, rejection, type StoreName, until, world } from "./support/world.ts";

const thread = "chat-1";
const empty = (): Response => new Response(null, { status: 204 });

/** A response that is at its end when the gate opens. */
function streaming(opened: Promise<void>, headers: Record<string, string> = {}): Response {
  const body = new ReadableStream<Uint8Array>({
    async start(controller) {
      const send = (text: string): void => controller.enqueue(new TextEncoder().encode(text));
      send('data: {"type":"start"}\n\n');
      await opened;
      send("data: [DONE]\n\n");
      controller.close();
    },
  });
  return new Response(body, { headers });
}

const forChat = { "x-vercel-ai-ui-message-stream": "v1" };

describe.each(["memory", "SQLite"] satisfies StoreName[])("withRun, %s store", (store) => {
  /** A run that holds the chat until it is told to end. */
  async function held(tp: Twiceproof, options: Partial<ChatRunOptions> = {}, headers?: Record<string, string>) {
    const end = gate();
    let over: Promise<void> | undefined;
    const response = await withRun(tp, { thread, ...options, waitUntil: (promise) => (over = promise) }, () =>
      streaming(end.opened, headers),
    );
    return { response, end: end.open, over: async () => await over };
  }

  async function codeOf(response: Response): Promise<unknown> {
    return ((await response.json()) as { code?: unknown }).code;
  }

  describe("passes on what a run may be told", () => {
    it.each<[string, Partial<ChatRunOptions>]>([
      ["THREAD_BUSY", {}],
      ["THREAD_WAIT_TIMEOUT", { onBusy: "wait", maxWaitMs: 1 }],
      ["THREAD_WAIT_TIMEOUT", { onBusy: "interrupt", graceMs: 1 }],
      ["RUN_IN_PROGRESS", { onBusy: "wait", runId: "run-1" }],
      ["RUN_IN_PROGRESS", { onBusy: "interrupt", runId: "run-1" }],
    ])("%s for %j", async (code, options) => {
      const { tp, other } = world(store);
      const { response, end } = await held(tp, { runId: "run-1" });
      const refused = await withRun(other, { thread, ...options }, empty);
      expect(refused.status).toBe(409);
      expect(Number(refused.headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
      expect(await codeOf(refused)).toBe(code);
      end();
      await response.text();
    });

    it("1: the place in line, which the line keeps, and how many may wait", async () => {
      const { tp, other } = world(store);
      const { response, end } = await held(tp);
      const order: string[] = [];
      const waiting = (name: string, ahead: number[]) =>
        withRun(other, { thread, onBusy: "wait", maxQueue: 2, onWait: (place) => ahead.push(place.ahead) }, () => {
          order.push(name);
          return empty();
        });
      const places: number[][] = [[], []];
      const all: Promise<Response>[] = [];
      for (const [index, ahead] of places.entries()) {
        all.push(waiting(`${index}`, ahead));
        await until(() => ahead.length > 0);
      }
      expect(await codeOf(await waiting("2", []))).toBe("THREAD_QUEUE_FULL");
      end();
      await response.text();
      await Promise.all(all);
      expect(order).toEqual(["0", "1"]);
      expect(places.map(([first]) => first)).toEqual([0, 1]);
    });
  });

  describe("the same run again", () => {
    const runId = "run-1";

    it("is run again, since a response cannot be kept", async () => {
      const { tp } = world(store);
      for (const text of ["first", "second"])
        expect(await (await withRun(tp, { thread, runId }, () => new Response(text))).text()).toBe(text);
    });

    it("with `remember`: RUN_FINISHED, once its response has come to its end", async () => {
      const { tp, other } = world(store);
      const options = { thread, runId, remember: true };
      expect(await (await withRun(tp, options, () => new Response("first"))).text()).toBe("first");
      let ran = false;
      const again = await withRun(other, options, () => {
        ran = true;
        return empty();
      });
      expect([again.status, await codeOf(again), ran]).toEqual([409, "RUN_FINISHED", false]);
    });

    it("with `remember`: is run again when its handler threw, its stream broke, or it was stopped", async () => {
      const { tp } = world(store);
      const options = { thread, runId, remember: true };
      const thrown = withRun(tp, options, () => {
        throw new Error("no such chat");
      });
      expect(await rejection(thrown)).toMatchObject({ message: "no such chat" });
      const broken = new ReadableStream({
        pull(controller) {
          controller.error(new Error("reset"));
        },
      });
      const second = await withRun(tp, { ...options, onBusy: "wait" }, () => new Response(broken));
      expect(await rejection(second.text())).toMatchObject({ message: "reset" });
      const third = await held(tp, options, forChat);
      expect(await tp.threads.cancel(thread, { runId, who: "ana", why: "Stop" })).toBe("requested");
      third.end();
      expect(await third.response.text()).toContain("RUN_CANCELLED");
      expect(await (await withRun(tp, options, () => new Response("fourth"))).text()).toBe("fourth");
    });
  });

  describe("who reads the response to its end", () => {
    it.each([forChat, {}])("finds the chat free at once: %j", async (headers) => {
      const { tp, other } = world(store);
      const { response, end } = await held(tp, {}, headers);
      end();
      expect(await response.text()).toBe('data: {"type":"start"}\n\ndata: [DONE]\n\n');
      expect(await other.threads.get(thread)).toBe(null);
    });

    async function lose(tp: Twiceproof): Promise<void> {
      const { token = 0 } = (await tp.threads.get(thread)) ?? {};
      expect(await tp.threads.unlock(thread, { token, who: "ana", why: "it stands still" })).toBe("unlocked");
    }

    it("is told the code, as the stream's last word but one, when the run lost its chat", async () => {
      const { tp } = world(store);
      const { response, end } = await held(tp, {}, forChat);
      await lose(tp);
      end();
      expect(await response.text()).toMatch(
        /^data: {"type":"start"}\n\ndata: {"type":"error","errorText":"RUN_LOST: [^"]+"}\n\ndata: \[DONE\]\n\n$/,
      );
    });

    it("sees no end of a response that is not for a chat page, when the run lost its chat", async () => {
      const { tp } = world(store);
      const { response, end } = await held(tp);
      await lose(tp);
      end();
      expect(await rejection(response.text())).toMatchObject({ code: "RUN_LOST" });
    });

    it("gets a 409 for a response without a body, when the run lost its chat", async () => {
      const { tp } = world(store);
      const response = await withRun(tp, { thread }, async () => {
        await lose(tp);
        return empty();
      });
      expect([response.status, await codeOf(response)]).toEqual([409, "RUN_LOST"]);
    });

    it("is told nothing more when it has left", async () => {
      const { tp } = world(store);
      const { response, end, over } = await held(tp, {}, forChat);
      await response.body?.cancel();
      await lose(tp);
      end();
      await over();
      expect(await tp.threads.get(thread)).toBe(null);
    });
  });
});
