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
