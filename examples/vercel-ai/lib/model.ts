import type { LanguageModel } from "ai";

/** The model that AI_MODEL names, such as "anthropic/claude-sonnet-4.5", by Vercel's gateway; without it a mock. */
export async function model(): Promise<LanguageModel> {
  return process.env.AI_MODEL ?? (await mock());
}

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};

/** Needs no network. It asks to charge the order that the user names; when it is told the result, it ends. */
async function mock(): Promise<LanguageModel> {
  const { MockLanguageModelV4, simulateReadableStream } = await import("ai/test");
  return new MockLanguageModelV4({
    doStream: async ({ prompt }) => {
      if (prompt.at(-1)?.role === "tool")
        return {
          stream: simulateReadableStream({
            chunks: [
              { type: "text-start", id: "1" },
              { type: "text-delta", id: "1", delta: "Done." },
              { type: "text-end", id: "1" },
              { type: "finish", finishReason: { unified: "stop", raw: "stop" }, usage },
            ],
          }),
        };
      const said = JSON.stringify(prompt.findLast(({ role }) => role === "user")?.content);
      const [, orderId = "A-17", dollars = "42"] = /order ([\w-]+), (\d+)/.exec(said) ?? [];
      const input = JSON.stringify({ orderId, cents: Number(dollars) * 100 });
      return {
        stream: simulateReadableStream({
          chunks: [
            { type: "tool-call", toolCallId: `call_${crypto.randomUUID()}`, toolName: "charge", input },
            { type: "finish", finishReason: { unified: "tool-calls", raw: "tool-calls" }, usage },
          ],
        }),
      };
    },
  });
}
