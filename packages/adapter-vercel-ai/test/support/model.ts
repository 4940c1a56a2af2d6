import type { Sdk } from "./sdk.ts";

/** One thing that the model says. */
export type Said =
  | { readonly text: string }
  | { readonly call: string; readonly tool: string; readonly input: object }
  /** The stream breaks here. */
  | { readonly broken: Error };

export interface Model {
  /** For `model`. */
  readonly model: object;
  /** What the model was asked, once for each time. */
  readonly prompts: readonly unknown[][];
}

/**
 * A scripted model, the same for the mocks of all majors. Its first step is what it says when it is first asked; it goes
 * on with the last step when it is asked more often.
 */
export function modelOf({ Mock, major }: Sdk, ...steps: readonly (readonly Said[] | Error)[]): Model {
  const prompts: unknown[][] = [];
  const usage =
    major === 5
      ? { inputTokens: 1, outputTokens: 1, totalTokens: 2 }
      : { inputTokens: { total: 1, noCache: 1 }, outputTokens: { total: 1, text: 1 } };

  function next({ prompt }: { readonly prompt: unknown[] }): readonly Said[] {
    // A copy of what is asked now: the SDK goes on with the same array.
    prompts.push([...prompt]);
    const step = steps[Math.min(prompts.length, steps.length) - 1];
    if (step === undefined) throw new Error("the script has no step");
    if (step instanceof Error) throw step;
    return step;
  }

  function finish(step: readonly Said[]) {
    const reason = step.some((said) => "call" in said) ? "tool-calls" : "stop";
    return { finishReason: major === 5 ? reason : { unified: reason, raw: reason }, usage };
  }

  const model = new Mock({
    doGenerate: async (options: { readonly prompt: unknown[] }) => {
      const step = next(options);
      return { content: step.flatMap(content), ...finish(step), warnings: [] };
    },
    doStream: async (options: { readonly prompt: unknown[] }) => {
      const step = next(options);
      const parts = [
        { type: "stream-start", warnings: [] },
        ...step.flatMap(chunks),
        { type: "finish", ...finish(step) },
      ];
      // One by one: an error would overtake what waits in a queue.
      const stream = new ReadableStream({
        pull(controller) {
          const part = parts.shift();
          if (part === undefined) controller.close();
          else if (part instanceof Error) controller.error(part);
          else controller.enqueue(part);
        },
      });
      return { stream };
    },
  });
  return { model, prompts };
}

function content(said: Said): object[] {
  if ("text" in said) return [{ type: "text", text: said.text }];
  if ("broken" in said) throw said.broken;
  return [{ type: "tool-call", toolCallId: said.call, toolName: said.tool, input: JSON.stringify(said.input) }];
}

function chunks(said: Said): object[] {
  if ("broken" in said) return [said.broken];
  if (!("text" in said)) return content(said);
  return [
    { type: "text-start", id: "t" },
    { type: "text-delta", id: "t", delta: said.text },
    { type: "text-end", id: "t" },
  ];
}
