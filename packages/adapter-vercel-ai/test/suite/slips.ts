import {
  type ChatRun,
  guardTool,
  guardTools,
  type Kinds,
  mcpKinds,
  turnOf,
  withRun,
} from "@twiceproof/adapter-vercel-ai";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { modelOf } from "../support/model.ts";
import { errors, post, user } from "../support/route.ts";
import type { Sdk } from "../support/sdk.ts";
import { rejection, type StoreName, world } from "../support/world.ts";

export function slips(sdk: Sdk, store: StoreName): void {
  const make = () => sdk.tool({ description: "d", inputSchema: z.object({}), execute: async () => 1 });
  const inRun = async (use: (run: ChatRun) => void): Promise<unknown> => {
    const { tp, events } = world(store);
    const outcome = await withRun(tp, { thread: "chat-1", turn: "t" }, (run) => {
      use(run);
      return new Response("nothing was refused");
    }).then(
      (response) => response.text(),
      (error: unknown) => error,
    );
    expect(events).toEqual([]);
    return outcome;
  };

  describe("a slip is an error that names the tool, before anything runs", () => {
    it.each<[string, string, RegExp, (run: ChatRun) => void]>([
      [
        "a tool without a kind",
        "TOOL_UNCLASSIFIED",
        /"charge" has no kind/,
        (run) => {
          run.tools({ look: make(), charge: make() }, { look: "read" } as unknown as Kinds<Record<string, object>>);
        },
      ],
      [
        "a kind that is none",
        "TOOL_UNCLASSIFIED",
        /"charge" has no kind/,
        (run) => {
          run.tools({ charge: make() }, { charge: "write" as "effect" });
        },
      ],
      [
        "a kind that a prototype has",
        "TOOL_UNCLASSIFIED",
        /"constructor" has no kind/,
        (run) => {
          run.tools({ constructor: make() }, {} as unknown as Kinds<{ constructor: object }>);
        },
      ],
      [
        "a function that gives no kind",
        "TOOL_UNCLASSIFIED",
        /"charge" has no kind/,
        (run) => {
          run.tools({ charge: make() }, (() => undefined) as unknown as Kinds<Record<string, object>>);
        },
      ],
      [
        "two tools of one name",
        "INVALID_ARGUMENT",
        /"charge": two tools of this run/,
        (run) => {
          run.tools({ charge: make() }, { charge: "effect" });
          run.tools({ charge: make() }, { charge: "effect" });
        },
      ],
      [
        "two sets of rules for one tool",
        "INVALID_ARGUMENT",
        /"charge": two tools of this run/,
        (run) => {
          const charge = make();
          run.tools({ charge }, { charge: "effect" });
          run.tools({ charge }, { charge: "idempotent" });
        },
      ],
      [
        "rules for a tool that is not there",
        "INVALID_ARGUMENT",
        /"chrage": there are rules/,
        (run) => {
          run.tools({ charge: make() }, { charge: "effect" }, { chrage: { waitMs: 1 } } as object);
        },
      ],
      [
        "a rule that is none",
        "INVALID_ARGUMENT",
        /"charge": `waitMS` is no option/,
        (run) => {
          run.tools({ charge: make() }, { charge: "effect" }, { charge: { waitMS: 1 } } as object);
        },
      ],
      [
        "a rule with a bad value",
        "INVALID_ARGUMENT",
        /"charge": .*`leaseMs`/,
        (run) => {
          run.tools({ charge: make() }, { charge: "effect" }, { charge: { leaseMs: 1 } });
        },
      ],
      [
        "an option that is none",
        "INVALID_ARGUMENT",
        /"charge": `runs` is no option/,
        (run) => {
          guardTool("charge", make(), { runs: run } as unknown as { run: ChatRun });
        },
      ],
      [
        "no place",
        "INVALID_ARGUMENT",
        /"charge": it needs a `run`, or `tp`/,
        () => {
          guardTool("charge", make(), {} as unknown as { run: ChatRun });
        },
      ],
      [
        "something that is no tool",
        "INVALID_ARGUMENT",
        /"charge": it is no tool/,
        (run) => {
          guardTool("charge", undefined as unknown as object, { run });
        },
      ],
      [
        "a promise of tools",
        "INVALID_ARGUMENT",
        /`tools`.*await/,
        (run) => {
          run.tools(Promise.resolve({ charge: make() }) as unknown as Record<string, object>, mcpKinds());
        },
      ],
      [
        "a list of tools",
        "INVALID_ARGUMENT",
        /`tools`/,
        (run) => {
          run.tools([make()] as unknown as Record<string, object>, mcpKinds());
        },
      ],
      [
        "no tools",
        "INVALID_ARGUMENT",
        /`tools`/,
        (run) => {
          run.tools(undefined as unknown as Record<string, object>, mcpKinds());
        },
      ],
      [
        "a function that makes kinds, not called",
        "INVALID_ARGUMENT",
        /`mcpKinds\(\)`/,
        (run) => {
          run.tools({ charge: make() }, mcpKinds as unknown as ReturnType<typeof mcpKinds>);
        },
      ],
      [
        "rules for a read",
        "INVALID_ARGUMENT",
        /"charge": .*`read`.*`key`/,
        (run) => {
          run.tools({ charge: make() }, { charge: "read" }, { charge: { key: () => "k" } });
        },
      ],
      [
        "a loop without options",
        "INVALID_ARGUMENT",
        /`run\.loop`.*`stopWhen`/,
        (run) => {
          (run.loop as () => unknown)();
        },
      ],
      [
        "a loop without its condition",
        "INVALID_ARGUMENT",
        /`run\.loop`.*`stopWhen`/,
        (run) => {
          (run.loop as (options: object) => unknown)({});
        },
      ],
      [
        "a condition that is none",
        "INVALID_ARGUMENT",
        /`run\.loop`.*`stopWhen`/,
        (run) => {
          (run.loop as (options: object) => unknown)({ stopWhen: [sdk.stepCountIs(5), 5] });
        },
      ],
      [
        "a step that is no function",
        "INVALID_ARGUMENT",
        /`run\.loop`.*`prepareStep`/,
        (run) => {
          (run.loop as (options: object) => unknown)({ stopWhen: [], prepareStep: {} });
        },
      ],
      [
        "an option of the loop that is none",
        "INVALID_ARGUMENT",
        /`stopwhen` is no option of run\.loop/,
        (run) => {
          (run.loop as (options: object) => unknown)({ stopWhen: [], stopwhen: 1 });
        },
      ],
    ])("%s", async (_what, code, message, use) => {
      expect(await inRun(use)).toMatchObject({ code, message: expect.stringMatching(message) });
    });

    it("no turn where the identity needs one, unless the tool has a key", () => {
      const { tp } = world(store);
      const place = { tp, scope: "chat-1" } as unknown as { tp: typeof tp; scope: string; turn: string };
      const missing = expect.objectContaining({
        code: "IDENTITY_MISSING",
        message: expect.stringContaining('"charge"'),
      });
      expect(() => guardTool("charge", make(), place)).toThrow(missing);
      expect(() => guardTools({ charge: make() }, { kinds: { charge: "effect" }, ...place })).toThrow(missing);
      guardTool("charge", make(), { key: () => "order:1", ...place });
    });

    it.each([
      [
        "throws",
        (): string => {
          throw new Error("no order");
        },
      ],
      ["gives an empty text", () => ""],
    ])("a key that %s", async (_what, key) => {
      const { tp, events } = world(store);
      const model = modelOf(sdk, [{ call: "a", tool: "charge", input: {} }], [{ text: "." }]);
      const answer = await post(sdk, [user("m1", "pay")], {
        tp,
        model,
        tools: { charge: make() },
        rules: { charge: { key } },
      });
      expect(errors(answer)).toEqual([expect.stringMatching(/^INVALID_ARGUMENT: .*"charge"/)]);
      expect(events).toEqual([]);
    });

    it("a response that was read already, or that another request has had", async () => {
      const { tp } = world(store);
      const read = Response.json({ a: 1 });
      await read.text();
      const shared = new Response("hello");
      expect(await (await withRun(tp, { thread: "t" }, () => shared)).text()).toBe("hello");
      for (const response of [read, shared])
        expect(await rejection(withRun(tp, { thread: "t" }, () => response))).toMatchObject({
          code: "INVALID_ARGUMENT",
          message: expect.stringContaining("read already"),
        });
      expect(await tp.threads.get("t")).toBe(null);
    });

    it("messages that are none", () => {
      for (const messages of [undefined, {}, Promise.resolve([])])
        expect(() => turnOf(messages as unknown as [])).toThrow(expect.objectContaining({ code: "INVALID_ARGUMENT" }));
    });

    it("messages that tell no turn", () => {
      const missing = expect.objectContaining({ code: "IDENTITY_MISSING" });
      expect(() => turnOf([])).toThrow(missing);
      expect(() => turnOf([{ ...user("m1", "pay"), role: "assistant" }])).toThrow(missing);
      expect(() => turnOf([user("", "pay")])).toThrow(missing);
    });

    it("`withRun` without a thread, with an option that is none, or with a handler that returns nothing", async () => {
      const { tp } = world(store);
      const handler = () => new Response();
      const refused = { code: "INVALID_ARGUMENT" };
      expect(await rejection(withRun(tp, {} as { thread: string }, handler))).toMatchObject(refused);
      expect(await rejection(withRun(tp, { thread: "t", threads: 1 } as { thread: string }, handler))).toMatchObject(
        refused,
      );
      expect(
        await rejection(withRun(tp, { thread: "t" }, (() => undefined) as unknown as typeof handler)),
      ).toMatchObject(refused);
      expect(await rejection(withRun(tp, { thread: "t" }, undefined as unknown as typeof handler))).toMatchObject(
        refused,
      );
    });
  });

  describe("hints of an MCP server", () => {
    const tool = (annotations?: object) => ({ metadata: { annotations } });

    it("count only when the server is trusted", () => {
      const read = tool({ readOnlyHint: true });
      for (const kinds of [mcpKinds(), mcpKinds({ trustHints: false })]) expect(kinds("x", read)).toBe("effect");
      const kinds = mcpKinds({ trustHints: true });
      expect(kinds("x", read)).toBe("read");
      expect(kinds("x", tool({ idempotentHint: true, readOnlyHint: false }))).toBe("idempotent");
      expect([tool({ destructiveHint: false }), tool(), {}].map((it) => kinds("x", it))).toEqual([
        "effect",
        "effect",
        "effect",
      ]);
    });
  });
}
