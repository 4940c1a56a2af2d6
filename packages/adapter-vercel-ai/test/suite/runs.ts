import { type ChatRun, turnOf, withRun } from "@twiceproof/adapter-vercel-ai";
import type { Twiceproof } from "@twiceproof/core";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { type Model, modelOf } from "../support/model.ts";
import { post, type RouteOptions, respond, user } from "../support/route.ts";
import type { Sdk } from "../support/sdk.ts";
import { gate, rejection, type StoreName, settled, until, world } from "../support/world.ts";

export function runs(sdk: Sdk, store: StoreName): void {
  const messages = [user("m1", "hi")];

  /** Whether another worker finds the chat free. */
  async function isFree(tp: Twiceproof): Promise<boolean> {
    const response = await withRun(tp, { thread: "chat-1" }, () => new Response(null, { status: 204 }));
    return response.status === 204;
  }

  describe("a run is over when its response was drained and its chat saved, and not before", () => {
    const hello = () => modelOf(sdk, [{ text: "hello" }]);
    const read = async (response: Response): Promise<unknown> => await response.text();

    interface Ending {
      readonly model?: () => Model;
      readonly options?: (stop: AbortController) => Partial<RouteOptions>;
      readonly meanwhile?: (response: Response, stop: AbortController) => unknown;
    }
    const endings: Record<string, Ending> = {
      "it finishes": { meanwhile: read },
      "nobody reads it": {},
      "the page is closed": { meanwhile: (response) => response.body?.cancel() },
      "the model's stream breaks": {
        model: () => modelOf(sdk, [{ text: "he" }, { broken: new Error("reset") }]),
        meanwhile: read,
      },
      "the provider rejects": {
        model: () => modelOf(sdk, new Error("overloaded")),
        options: () => ({ more: { maxRetries: 0, onError: () => undefined } }),
        meanwhile: read,
      },
      "it is aborted": {
        options: (stop) => ({ signal: stop.signal }),
        meanwhile: async (response, stop) => {
          stop.abort();
          await response.text();
        },
      },
    };

    it.each(Object.entries(endings))("%s", async (what, { model = hello, options, meanwhile }) => {
      const { tp, other } = world(store);
      // The floor of 5 calls no `onFinish` for a stream that breaks.
      const saved = what !== "the model's stream breaks" || sdk.title !== "ai 5.0.11";
      const stop = new AbortController();
      const saving = gate();
      let saves = 0;
      let over = false;
      const response = await respond(sdk, messages, {
        tp,
        tools: {},
        model: model(),
        ...options?.(stop),
        waitUntil: (done) => done.then(() => (over = true)),
        save: async () => {
          saves++;
          await saving.opened;
        },
      });
      expect(response.status).toBe(200);
      const end = Promise.resolve(meanwhile?.(response, stop)).catch(() => undefined);
      if (saved) {
        await until(() => saves === 1);
        await settled(other);
        expect(await isFree(other)).toBe(false);
        expect(over).toBe(false);
      }
      saving.open();
      await end;
      await until(() => over);
      expect(await isFree(other)).toBe(true);
      expect(saves).toBe(saved ? 1 : 0);
    });

    it("the handler throws: at once, and the error is the caller's", async () => {
      const { tp, other } = world(store);
      const error = await rejection(
        withRun(tp, { thread: "chat-1" }, () => {
          throw new Error("no such chat");
        }),
      );
      expect(error).toMatchObject({ message: "no such chat" });
      expect(await isFree(other)).toBe(true);
    });

    it("the handler throws an error of ours: it is answered when the chat is free", async () => {
      const { tp, other } = world(store);
      const answer = await withRun(tp, { thread: "chat-1", turn: "t" }, async (run) => {
        await run.once("charge:1", () => {
          throw new Error("socket hang up");
        });
        return new Response();
      });
      expect(answer.status).toBe(409);
      expect(await isFree(other)).toBe(true);
    });

    it.each([true, false])(
      "the handler throws while its stream goes on: its model is asked no more, lock: %s",
      async (lock) => {
        const { tp, executions } = world(store);
        const { opened, open } = gate();
        const work = sdk.tool({ description: "d", inputSchema: z.object({ n: z.number() }), execute: () => opened });
        const step = (n: number) => [{ call: `c${n}`, tool: "work", input: { n } }];
        const model = modelOf(sdk, step(1), step(2), step(3), [{ text: "." }]);
        let ended: Promise<unknown> | undefined;
        const refused = rejection(
          withRun(tp, { thread: "chat-1", turn: "t", lock }, async (run) => {
            const result = sdk.streamText({
              model: model.model,
              prompt: "go",
              tools: run.tools({ work }, { work: "effect" }),
              onError: () => undefined,
              ...run.loop({ stopWhen: sdk.stepCountIs(5) }),
            });
            ended = (async () => {
              for await (const _ of result.fullStream);
            })().catch(() => undefined);
            await until(() => executions("work") === 1);
            queueMicrotask(open);
            throw new Error("no such chat");
          }),
        );
        expect(await refused).toMatchObject({ message: "no such chat" });
        await ended;
        expect(model.prompts).toHaveLength(1);
        expect(executions("work")).toBe(1);
      },
    );

    it("what is left of a loop when its run is over asks the model no more", async () => {
      const { tp } = world(store);
      const model = modelOf(sdk, [{ text: "." }]);
      let left: object = {};
      await withRun(tp, { thread: "chat-1", turn: "t" }, (run) => {
        const { prepareStep, stopWhen } = run.loop({ stopWhen: sdk.stepCountIs(5) });
        left = { prepareStep, stopWhen };
        return new Response(null, { status: 204 });
      });
      const late = sdk.generateText({ model: model.model, prompt: "go", maxRetries: 0, ...left });
      expect(await rejection(late)).toMatchObject({ code: "RUN_LOST" });
      expect(model.prompts).toHaveLength(0);
    });

    it("the handler throws while a call is under way: when the call is through", async () => {
      const { tp, other } = world(store);
      const { opened, open } = gate();
      const slow = { execute: async (_input: object, _options: object) => await opened };
      let answered = false;
      const error = rejection(
        withRun(tp, { thread: "chat-1", turn: "t" }, (run) => {
          void run.tools({ slow }, { slow: "effect" }).slow.execute({}, {});
          throw new Error("no patience");
        }),
      ).finally(() => {
        answered = true;
      });
      await settled(other);
      expect([answered, await isFree(other)]).toEqual([false, false]);
      open();
      expect(await error).toMatchObject({ message: "no patience" });
      expect(await isFree(other)).toBe(true);
    });

    it("the handler returns a plain response, or one without a body: at once, with its status and headers", async () => {
      const { tp, other } = world(store);
      const headers = new Headers([
        ["set-cookie", "a=1"],
        ["set-cookie", "b=2"],
      ]);
      const plain = await withRun(tp, { thread: "chat-1" }, () => Response.json({ ok: 1 }, { status: 201, headers }));
      expect([plain.status, plain.headers.getSetCookie(), await plain.json()]).toEqual([
        201,
        ["a=1", "b=2"],
        { ok: 1 },
      ]);
      expect(await isFree(other)).toBe(true);
      const empty = new Response(null, { status: 204 });
      expect(await withRun(tp, { thread: "chat-1" }, () => empty)).toBe(empty);
      expect(await isFree(other)).toBe(true);
    });
  });

  describe("who finds the chat busy", () => {
    it("gets a 409 with Retry-After, and calls no model", async () => {
      const { tp, other } = world(store);
      const { opened, open } = gate();
      const first = respond(sdk, messages, { tp, tools: {}, model: modelOf(sdk, [{ text: "." }]), save: () => opened });
      await (await first).body?.cancel();
      const model = modelOf(sdk, [{ text: "." }]);
      const response = await respond(sdk, messages, { tp: other, tools: {}, model });
      expect(response.status).toBe(409);
      expect(Number(response.headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
      expect(await response.json()).toMatchObject({ code: "THREAD_BUSY", retryAfterMs: expect.any(Number) });
      expect(model.prompts).toHaveLength(0);
      open();
      await until(() => isFree(other));
    });

    it("goes on when the lock is off, under the same identity of calls", async () => {
      const { tp, other, executions } = world(store);
      const work = sdk.tool({ description: "d", inputSchema: z.object({}), execute: async () => "done" });
      const ask = () => modelOf(sdk, [{ call: "a", tool: "work", input: {} }], [{ text: "." }]);
      const answers = await Promise.all(
        [tp, other].map((worker) => post(sdk, messages, { tp: worker, tools: { work }, model: ask(), lock: false })),
      );
      expect(answers.map(({ status }) => status)).toEqual([200, 200]);
      expect(executions("work")).toBe(1);
    });
  });

  it("errors of ours that the handler throws become a response; slips of its own reject", async () => {
    const { tp } = world(store);
    const doubtful = async (run: ChatRun): Promise<Response> => {
      await run.once("k:1", () => {
        throw new Error("socket hang up");
      });
      return new Response();
    };
    const response = await withRun(tp, { thread: "chat-1" }, doubtful);
    expect([response.status, await response.json()]).toEqual([
      409,
      expect.objectContaining({ code: "EFFECT_IN_DOUBT" }),
    ]);
    const slip = (run: ChatRun): Response => {
      run.tools({ a: {} }, {} as { a: "read" });
      return new Response();
    };
    expect(await rejection(withRun(tp, { thread: "chat-2" }, slip))).toMatchObject({ code: "TOOL_UNCLASSIFIED" });
  });

  it("`run.once` and `run.recorded` are under the turn of the messages", async () => {
    const { tp, events } = world(store);
    const effect = { name: "mail", run: async (to: string) => `to ${to}` };
    const pass = async () => {
      const response = await withRun(tp, { thread: "chat-1", lock: false }, async (run) => {
        expect(await rejection(run.once(effect, "ana"))).toMatchObject({ code: "IDENTITY_MISSING" });
        expect(await rejection(run.recorded(effect, "ana"))).toMatchObject({ code: "IDENTITY_MISSING" });
        await run.repair(messages);
        const before = await run.recorded(effect, "ana");
        await run.once("log:1", () => undefined);
        return Response.json([before, await run.once(effect, "ana")]);
      });
      return await response.json();
    };
    expect(await pass()).toEqual([{ state: "none" }, "to ana"]);
    expect(await pass()).toEqual([{ state: "completed", result: "to ana", scope: "chat-1" }, "to ana"]);
    const executed = events.filter(({ type }) => type === "executing");
    expect(executed.map(({ name, turn }) => [name, turn])).toEqual([
      ["log", turnOf(messages)],
      ["mail", turnOf(messages)],
    ]);
  });
}
