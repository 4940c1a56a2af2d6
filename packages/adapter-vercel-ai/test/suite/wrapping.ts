import { effectTool, guardTool, guardTools, withRun } from "@twiceproof/adapter-vercel-ai";
import { defineEffect } from "@twiceproof/core";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { modelOf } from "../support/model.ts";
import { outputs, post, user } from "../support/route.ts";
import type { Sdk } from "../support/sdk.ts";
import { gate, rejection, type StoreName, until, type World, world } from "../support/world.ts";

type Bare = (input: unknown, options: object) => Promise<unknown>;
type Yielding = (input: unknown, options: object) => AsyncIterable<unknown>;

export function wrapping(sdk: Sdk, store: StoreName): void {
  const inputSchema = z.object({ cents: z.number() });
  const input = { cents: 5 };
  const place = ({ tp }: World, turn = "turn-1") => ({ tp, scope: "chat-1", turn });
  const asks = () => modelOf(sdk, [{ call: "a", tool: "work", input }], [{ text: "." }]);

  async function collect(values: AsyncIterable<unknown>): Promise<unknown[]> {
    const all: unknown[] = [];
    for await (const value of values) all.push(value);
    return all;
  }

  describe("a guarded tool", () => {
    it("has everything else of the tool, which is not changed: prototype, getters, symbols", async () => {
      const w = world(store);
      const symbol = Symbol("own");
      class Charge {
        readonly rate = 2;
        inputSchema = inputSchema;
        get description() {
          return `at ${this.rate}`;
        }
        execute(this: Charge, { cents }: { cents: number }) {
          return this.rate * cents;
        }
        inherited() {
          return this.rate;
        }
      }
      const tool = Object.assign(new Charge(), { [symbol]: 1 });
      const before = Object.getOwnPropertyDescriptors(tool);
      const guarded = guardTool("charge", tool, place(w));
      expect(Object.getOwnPropertyDescriptors(tool)).toEqual(before);
      expect(guarded).toBeInstanceOf(Charge);
      expect([guarded.description, guarded.inherited(), guarded[symbol]]).toEqual(["at 2", 2, 1]);
      expect(await guarded.execute(input)).toBe(10);
      expect(await guarded.execute(input)).toBe(10);
      expect(w.executions("charge")).toBe(1);
    });

    it("of a class with private members runs what it inherits on the tool itself, in a request as well", async () => {
      const w = world(store);
      class Work {
        #told = "told: ";
        inputSchema = inputSchema;
        get description() {
          return `${this.#told}works`;
        }
        async execute({ cents }: { cents: number }) {
          return this.#told.length * cents;
        }
        toModelOutput(value: unknown) {
          return { type: "text", value: `${this.#told}${JSON.stringify(value)}` };
        }
        needsApproval() {
          return this.#told === "";
        }
      }
      const tool = new Work();
      const guarded = guardTool("other", tool, place(w));
      expect(guarded).toBeInstanceOf(Work);
      expect([guarded.description, guarded.needsApproval(), "needsApproval" in guarded]).toEqual([
        "told: works",
        false,
        true,
      ]);
      const model = asks();
      const answer = await post(sdk, [user("m1", "go")], { tp: w.tp, tools: { work: tool }, model });
      expect(outputs(answer)).toEqual([30]);
      expect(JSON.stringify(model.prompts[1])).toContain("told: ");
    });

    it("that a Proxy makes up keeps what it gives: without own members, and with some", async () => {
      const w = world(store);
      const made: Record<PropertyKey, unknown> = { description: "made up", inputSchema, execute: async () => "done" };
      const lazy = new Proxy({}, { get: (_target, name) => made[name], has: (_target, name) => name in made });
      const over = new Proxy(
        { description: "d", inputSchema, execute: async () => "no" },
        { get: (_target, name) => made[name] },
      );
      for (const [name, tool] of Object.entries({ lazy, over })) {
        const guarded = guardTool(name, tool as typeof over, place(w));
        expect([guarded.description, guarded.inputSchema, "description" in guarded]).toEqual([
          "made up",
          inputSchema,
          true,
        ]);
        expect(await (guarded.execute as unknown as Bare)(input, {})).toBe("done");
      }
      const model = asks();
      const answer = await post(sdk, [user("m1", "go")], { tp: w.tp, tools: { work: lazy }, model });
      expect(outputs(answer)).toEqual(["done"]);
    });

    it("may be made of a frozen tool, and its execute may be taken off it", async () => {
      const w = world(store);
      const tool = Object.freeze(sdk.tool({ description: "d", inputSchema, execute: async () => "done" }));
      const { execute } = guardTool("charge", tool, place(w)) as unknown as { execute: Bare };
      expect(await execute(input, { toolCallId: "a" })).toBe("done");
      expect(await execute(input, { toolCallId: "b" })).toBe("done");
      expect(w.executions("charge")).toBe(1);
    });

    it("hands on the options of the SDK, and a signal that its caller's abort reaches", async () => {
      const w = world(store);
      const caller = new AbortController();
      let seen: { abortSignal?: AbortSignal; messages?: unknown; context?: unknown } = {};
      const { opened, open } = gate();
      const tool = {
        inputSchema,
        execute: async (_input: unknown, options: typeof seen) => {
          seen = options;
          await opened;
          return "done";
        },
      };
      const guarded = guardTool("charge", tool, place(w));
      const result = guarded.execute(input, { abortSignal: caller.signal, messages: ["m"], context: { a: 1 } });
      await until(() => seen.messages !== undefined);
      expect(seen).toMatchObject({ messages: ["m"], context: { a: 1 } });
      expect(seen.abortSignal?.aborted).toBe(false);
      caller.abort(new Error("stop"));
      expect(seen.abortSignal?.aborted).toBe(true);
      open();
      // It had begun: it is recorded, and told.
      expect(await result).toBe("done");
      expect(await guarded.execute(input, {})).toBe("done");
    });

    it("hears of the end of its run by the signal, whatever its caller passed", async () => {
      const { tp } = world(store);
      const stop = new AbortController();
      const heard = gate();
      const tool = {
        inputSchema,
        execute: async (_input: unknown, { abortSignal }: { abortSignal?: AbortSignal }) => {
          abortSignal?.addEventListener("abort", heard.open);
          stop.abort();
          await heard.opened;
          return "stopped";
        },
      };
      await withRun(tp, { thread: "chat-1", turn: "t", signal: stop.signal }, async (run) => {
        expect(await run.tools({ tool }, { tool: "effect" }).tool.execute(input, {})).toBe("stopped");
        return new Response();
      });
    });

    it("guarded again with equal rules is itself; with other rules, or in another place, an error that names it", () => {
      const w = world(store);
      const tool = sdk.tool({ description: "d", inputSchema, execute: async () => 1 });
      const key = () => "k";
      const guarded = guardTool("charge", tool, { kind: "effect", key, ...place(w) });
      expect(guardTool("charge", guarded, { key, ...place(w) })).toBe(guarded);
      expect(
        guardTools({ charge: guarded }, { kinds: { charge: "effect" }, rules: { charge: { key } }, ...place(w) }),
      ).toEqual({ charge: guarded });
      for (const options of [
        { key: () => "k", ...place(w) },
        { key, kind: "idempotent" as const, ...place(w) },
        { kind: "read" as const, ...place(w) },
        { key, ...place(w, "turn-2") },
      ])
        expect(() => guardTool("charge", guarded, options)).toThrow(/The tool "charge": it is guarded already/);
      expect(() => guardTool("charge", { ...guarded }, { ...place(w) })).toThrow(/guarded already/);
    });
  });

  describe("a generator tool", () => {
    const working = (started: () => void, opened: Promise<void>) =>
      async function* () {
        started();
        yield { state: "working" };
        await opened;
        yield { state: "done", at: new Date(0) };
      };
    const done = { state: "done", at: new Date(0) };

    it("streams its preliminary results while it works; the last is recorded, and given once in a replay", async () => {
      const { tp, other } = world(store);
      const { opened, open } = gate();
      let started = 0;
      const execute = working(() => started++, opened);
      const tools = { work: sdk.tool({ description: "d", inputSchema, execute }) };
      const read: unknown[] = [];
      const answer = post(sdk, [user("m1", "go")], {
        tp,
        tools,
        model: asks(),
        more: {
          onChunk: ({ chunk }: { chunk: { type: string; preliminary?: boolean; output?: unknown } }) => {
            if (chunk.type === "tool-result") read.push([chunk.preliminary === true, chunk.output]);
          },
        },
      });
      await until(() => read.length === 1);
      expect(read).toEqual([[true, { state: "working" }]]);
      open();
      await answer;
      expect(read).toEqual([
        [true, { state: "working" }],
        [true, done],
        [true, done],
        [false, done],
      ]);
      const again = await post(sdk, [user("m1", "go")], { tp: other, tools, model: asks() });
      const asJson = JSON.parse(JSON.stringify(done));
      expect(outputs(again)).toEqual([asJson, asJson]);
      expect(started).toBe(1);
    });

    it("keeps what was yielded for a listener that is slower than the work", async () => {
      const w = world(store);
      const execute = async function* () {
        yield* ["a", "b", "c"];
      };
      const guarded = guardTool("work", { inputSchema, execute }, place(w)) as unknown as { execute: Yielding };
      const heard: unknown[] = [];
      for await (const value of guarded.execute(input, {})) {
        heard.push(value);
        await until(() => w.events.some(({ type }) => type === "completed"));
      }
      expect(heard).toEqual(["a", "b", "c", "c"]);
    });

    it("works in generateText", async () => {
      const w = world(store);
      const { opened, open } = gate();
      open();
      const model = asks();
      const tool = sdk.tool({ description: "d", inputSchema, execute: working(() => undefined, opened) });
      const result = await sdk.generateText({
        model: model.model,
        prompt: "go",
        tools: { work: guardTool("work", tool, place(w)) },
        stopWhen: sdk.stepCountIs(5),
      });
      expect(result.text).toBe(".");
      expect(JSON.stringify(model.prompts[1])).toContain('"state":"done"');
    });

    it("that a compiler has turned into a plain function: its last yield, and all of them with `streaming`", async () => {
      const w = world(store);
      const { opened, open } = gate();
      open();
      const compiled = { inputSchema, execute: (...args: []) => working(() => undefined, opened)(...args) };
      const plain = guardTool("plain", compiled, place(w)) as unknown as { execute: Bare };
      expect(await plain.execute(input, {})).toEqual(done);
      const streaming = guardTool("work", compiled, { streaming: true, ...place(w) }) as unknown as {
        execute: Yielding;
      };
      expect(await collect(streaming.execute(input, {}))).toEqual([{ state: "working" }, done, done]);
      expect(await collect(streaming.execute(input, {}))).toEqual([done]);
    });

    it("that nobody listens to any more goes on, and is recorded", async () => {
      const w = world(store);
      const { opened, open } = gate();
      let started = 0;
      const tool = { inputSchema, execute: working(() => started++, opened) };
      const guarded = guardTool("work", tool, place(w)) as unknown as { execute: Yielding };
      for await (const _first of guarded.execute(input, {})) break;
      open();
      expect(await collect(guarded.execute(input, {}))).toEqual([done]);
      expect(started).toBe(1);
    });

    it("that throws midway is in doubt, after what it had to say", async () => {
      const w = world(store);
      const execute = async function* () {
        yield "half";
        throw new Error("socket hang up");
      };
      const guarded = guardTool("work", { inputSchema, execute }, place(w)) as unknown as { execute: Yielding };
      const heard: unknown[] = [];
      const listen = async (): Promise<void> => {
        for await (const value of guarded.execute(input, {})) heard.push(value);
      };
      expect(await rejection(listen())).toMatchObject({ code: "EFFECT_IN_DOUBT" });
      expect(await rejection(listen())).toMatchObject({ code: "EFFECT_IN_DOUBT" });
      expect(heard).toEqual(["half"]);
      expect(w.executions("work")).toBe(1);
    });
  });

  describe("a tool of an effect", () => {
    it("has the effect's schema, key and rules, and its body gets the idempotency key", async () => {
      const w = world(store);
      const keys: string[] = [];
      const charge = defineEffect({
        name: "charge",
        input: z.object({ orderId: z.string() }),
        key: ({ orderId }) => `order:${orderId}`,
        run: async ({ orderId }, { idempotencyKey }) => {
          keys.push(idempotencyKey);
          return { charged: orderId };
        },
      });
      const asked = () => modelOf(sdk, [{ call: "a", tool: "pay", input: { orderId: "o-1" } }], [{ text: "." }]);
      const answers = [];
      for (const turn of ["m1", "m2"]) {
        answers.push(
          await post(sdk, [user(turn, "pay")], {
            tp: w.tp,
            tools: {},
            model: asked(),
            more: {
              tools: { pay: effectTool(charge, { description: "Charges", inputSchema: charge.input, ...place(w) }) },
            },
          }),
        );
      }
      expect(answers.flatMap(outputs)).toEqual([{ charged: "o-1" }, { charged: "o-1" }]);
      // What plain code did with the same key is the same effect.
      expect(await w.other.once(charge, { orderId: "o-1" })).toEqual({ charged: "o-1" });
      expect(keys).toEqual([expect.stringMatching(/^[0-9a-f-]{36}$/)]);
    });

    it("stands in a set under another name, with its own kind, and without rules", async () => {
      const { tp } = world(store);
      const charge = defineEffect({ name: "charge", input: inputSchema, run: async ({ cents }) => cents });
      const answer = await post(sdk, [user("m1", "pay")], {
        tp,
        tools: {},
        model: modelOf(sdk, [{ text: "." }]),
        onRun: (run) => {
          const pay = effectTool(charge, { description: "Charges", run });
          expect(run.tools({ pay }, { pay: "effect" }).pay).toBe(pay);
          expect(() => run.tools({ pay }, { pay: "read" })).toThrow(/The tool "pay"/);
          expect(() => run.tools({ pay }, { pay: "effect" }, { pay: { waitMs: 1 } })).toThrow(/The tool "pay"/);
          expect(() => effectTool(defineEffect({ name: "bare", run: () => 1 }), { run })).toThrow(/The tool "bare"/);
        },
      });
      expect(answer.status).toBe(200);
    });
  });
}
