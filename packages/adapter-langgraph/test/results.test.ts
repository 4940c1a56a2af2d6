import { Document } from "@langchain/core/documents";
import { AIMessage, type BaseMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { Command, isCommand, Send } from "@langchain/langgraph";
import { createTwiceproof, done, doneWithoutResult, memoryStore } from "@twiceproof/core";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { guardTool } from "../src/index.ts";
import { rejection } from "./support/waiting.ts";

type Fields = Partial<Parameters<typeof tool>[1]>;

/** A guarded tool, called twice through one business key, by two calls of a model that have different ids. */
async function twice(run: (config: { toolCall: { id: string } }) => unknown, fields: Fields = {}) {
  let count = 0;
  const tp = createTwiceproof({ store: memoryStore() });
  const body = (_: unknown, config: unknown) => {
    count++;
    return run(config as never);
  };
  const schema = z.object({ n: z.number() });
  const made = tool(body as never, { name: "work", description: "works", schema, ...fields } as never);
  const work = guardTool(made as never, { tp, key: () => "work:1" } as never) as typeof made;
  const call = async (id: string): Promise<unknown> =>
    await work.invoke({ id, name: "work", args: { n: 1 }, type: "tool_call" } as never);
  const first = await call("first");
  const second = await call("second");
  expect(count).toBe(1);
  return { first, second };
}

function asPlain(message: unknown, callId: string) {
  const { content, artifact, status, name, tool_call_id, id } = message as ToolMessage;
  expect(ToolMessage.isInstance(message as BaseMessage)).toBe(true);
  expect(tool_call_id).toBe(callId);
  return { content, artifact, status, name, id };
}

describe("7: a result comes back as it was", () => {
  it.each([
    ["a string", "hello", "hello"],
    ["an object", { a: [1, null], b: "x" }, '{"a":[1,null],"b":"x"}'],
    ["nothing", undefined, ""],
    ["content blocks", [{ type: "text", text: "hi" }], [{ type: "text", text: "hi" }]],
  ])("%s", async (_, result, content) => {
    const { first, second } = await twice(() => result);
    expect(asPlain(first, "first")).toMatchObject({ content, status: "success", name: "work" });
    expect(asPlain(second, "second")).toEqual(asPlain(first, "first"));
  });

  it("content and an artifact with rich values", async () => {
    const artifact = {
      when: new Date(0),
      map: new Map([["a", new Set([1n])]]),
      bytes: new Uint8Array([1, 2]),
      nan: Number.NaN,
      documents: [new Document({ pageContent: "page", metadata: { at: new Date(1) }, id: "d1" })],
      history: [new HumanMessage({ content: "hi", id: "h1" }), new AIMessage("yes")],
    };
    const { first, second } = await twice(() => ["text", artifact], { responseFormat: "content_and_artifact" });
    expect(asPlain(second, "second")).toEqual(asPlain(first, "first"));
    const { content, artifact: got } = second as ToolMessage;
    expect(content).toBe("text");
    expect(got).toEqual(artifact);
    expect(got.documents[0]).toBeInstanceOf(Document);
    expect(got.history[1]).toBeInstanceOf(AIMessage);
  });

  it("a ToolMessage: its own id is dropped, and it answers the call that is made", async () => {
    const { first, second } = await twice(
      ({ toolCall }) =>
        new ToolMessage({
          content: "mine",
          tool_call_id: toolCall.id,
          id: "m1",
          artifact: new Map([[1, 2]]),
          status: "error",
        }),
    );
    expect(asPlain(first, "first")).toMatchObject({ content: "mine", status: "error", artifact: new Map([[1, 2]]) });
    expect(asPlain(first, "first").id).toBeUndefined();
    expect(asPlain(second, "second")).toEqual(asPlain(first, "first"));
  });

  it("a Command: update, goto, Send, and the messages in it", async () => {
    const other = new HumanMessage({ content: "kept", id: "h1" });
    const { first, second } = await twice(
      ({ toolCall }) =>
        new Command({
          graph: Command.PARENT,
          goto: [new Send("node", { when: new Date(0) }), "other"],
          update: {
            count: 1n,
            messages: [other, new ToolMessage({ content: "handed over", tool_call_id: toolCall.id, id: "m1" })],
          },
        }),
    );
    for (const [result, id] of [
      [first, "first"],
      [second, "second"],
    ] as const) {
      if (!isCommand(result)) throw new Error("it is no Command");
      expect(result).toBeInstanceOf(Command);
      expect(result.graph).toBe(Command.PARENT);
      const [send, name] = result.goto as [Send, string];
      expect(send).toBeInstanceOf(Send);
      expect([send.node, send.args, name]).toEqual(["node", { when: new Date(0) }, "other"]);
      const { count, messages } = result.update as { count: bigint; messages: BaseMessage[] };
      expect(count).toBe(1n);
      expect(messages[0]).toMatchObject({ content: "kept", id: "h1", type: "human" });
      expect(asPlain(messages[1], id)).toMatchObject({ content: "handed over", id: undefined });
    }
  });

  it("a Command with a resume and an update in pairs", async () => {
    const { first, second } = await twice(
      () => new Command({ resume: { yes: true }, update: [["seen", ["a"]]] as never, goto: "end" }),
    );
    expect(second).toEqual(first);
    expect(second).toMatchObject({ resume: { yes: true }, update: [["seen", ["a"]]], goto: ["end"] });
  });

  it("the return value of a generator, whose steps are passed on once", async () => {
    const { first, second } = await twice(async function* () {
      yield "step";
      return "returned";
    } as never);
    expect(asPlain(first, "first").content).toBe("returned");
    expect(asPlain(second, "second").content).toBe("returned");
  });
});

describe("a result that was not kept", () => {
  class Live {
    readonly socket = () => undefined;
  }

  it("is the first caller's; later ones are told that it was done", async () => {
    const { first, second } = await twice(() => ["text", new Live()], { responseFormat: "content_and_artifact" });
    expect((first as ToolMessage).artifact).toBeInstanceOf(Live);
    expect(asPlain(second, "second")).toMatchObject({
      content: expect.stringMatching(/^"work" was done already, and its result was not kept/),
      status: "success",
    });
  });

  it.each([
    [done("by hand"), "by hand"],
    [doneWithoutResult(), expect.stringMatching(/was done already/)],
  ] as const)("a verdict's result need not be the pair that the tool gives", async (verdict, content) => {
    const tp = createTwiceproof({ store: memoryStore() });
    const schema = z.object({ n: z.number() });
    const lost = tool(
      (): [string, number] => {
        throw new Error("lost");
      },
      { name: "work", description: "works", schema, responseFormat: "content_and_artifact" },
    );
    const work = guardTool(lost, { tp, key: () => "work:1" });
    const { id = "" } = await rejection(work.invoke({ n: 1 }));
    const doubt = (await tp.doubts.get(id)) ?? expect.fail("no doubt");
    await tp.doubts.resolve(doubt, verdict as never, { who: "ana", why: "asked" });
    expect(await work.invoke({ id: "c", name: "work", args: { n: 1 }, type: "tool_call" })).toMatchObject({ content });
  });
});
