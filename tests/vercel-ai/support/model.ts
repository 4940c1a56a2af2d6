import type { AiVersion, Said } from "./protocol.ts";

type Mock = new (fields: object) => object;

const mocks: Readonly<Record<AiVersion, () => Promise<unknown>>> = {
  "ai-v5": async () => (await import("ai-v5/test")).MockLanguageModelV2,
  "ai-v6": async () => (await import("ai-v6/test")).MockLanguageModelV3,
  "ai-v7": async () => (await import("ai-v7/test")).MockLanguageModelV4,
};

/** A model that says these things, one each time it is asked; `asked` is called before. */
export async function scripted(version: AiVersion, script: readonly Said[], asked: () => void): Promise<object> {
  const Mock = (await mocks[version]()) as Mock;
  const steps = [...script];
  const usage =
    version === "ai-v5"
      ? { inputTokens: 1, outputTokens: 1, totalTokens: 2 }
      : { inputTokens: { total: 1, noCache: 1 }, outputTokens: { total: 1, text: 1 } };

  return new Mock({
    async doStream() {
      asked();
      const said = steps.shift();
      if (said === undefined) throw new Error("the script is over");
      const reason = "text" in said ? "stop" : "tool-calls";
      return {
        stream: ReadableStream.from([
          { type: "stream-start", warnings: [] },
          ...chunks(said),
          { type: "finish", finishReason: version === "ai-v5" ? reason : { unified: reason, raw: reason }, usage },
        ]),
      };
    },
  });
}

function chunks(said: Said): readonly object[] {
  if (!("text" in said))
    return [{ type: "tool-call", toolCallId: said.call, toolName: said.tool, input: JSON.stringify(said.input) }];
  return [
    { type: "text-start", id: "1" },
    { type: "text-delta", id: "1", delta: said.text },
    { type: "text-end", id: "1" },
  ];
}
