import {
  type ChatRun,
  effectTool,
  guardTool,
  guardTools,
  mcpKinds,
  turnOf,
  withChat,
  withRun,
} from "@twiceproof/adapter-vercel-ai";
import { defineEffect, type Run, type Twiceproof } from "@twiceproof/core";
import {
  Experimental_Agent as Agent,
  convertToModelMessages,
  dynamicTool,
  generateText,
  type InferUITools,
  type LanguageModel,
  type PrepareStepFunction,
  type StopCondition,
  stepCountIs,
  streamText,
  type ToolSet,
  tool,
  type UIMessage,
} from "ai-v5";
import { z } from "zod";
import { type Eq, is } from "./eq.ts";

const tools = {
  charge: tool({
    description: "Charges the card",
    inputSchema: z.object({ cents: z.number() }),
    execute: async ({ cents }) => ({ receipt: `r-${cents}` }),
  }),
  report: tool({
    description: "Streams",
    inputSchema: z.object({ of: z.string() }),
    execute: async function* ({ of }) {
      yield { progress: of.length };
    },
  }),
  ask: tool({ description: "The page's", inputSchema: z.object({ question: z.string() }), outputSchema: z.string() }),
  anything: dynamicTool({ description: "d", inputSchema: z.object({}), execute: async () => 1 }),
};
type Tools = typeof tools;

/** Never called: it is compiled. */
export async function check(run: ChatRun, plain: Run, tp: Twiceproof, model: LanguageModel, messages: UIMessage[]) {
  const kinds = { charge: "effect", report: "idempotent", ask: "read", anything: "effect" } as const;
  const guarded = run.tools(tools, kinds, { charge: { key: ({ cents }) => `charge:${cents}`, waitMs: 1 } });
  guarded satisfies ToolSet;
  is<Eq<typeof guarded, Tools>>();
  is<Eq<InferUITools<typeof guarded>, InferUITools<Tools>>>();
  is<Eq<InferUITools<typeof guarded>["charge"]["output"], { receipt: string }>>();

  const place = { tp, scope: "chat", turn: turnOf(messages) };
  const one = guardTool("charge", tools.charge, { key: ({ cents }) => `charge:${cents.toFixed()}`, ...place });
  is<Eq<typeof one, Tools["charge"]>>();
  guardTools(tools, { kinds: (_name, given) => (given === tools.ask ? "read" : "effect"), run: plain });
  guardTools(tools, { kinds: mcpKinds({ trustHints: true }), ...place });

  // Tools that are written in place are typed by their schema.
  const inline = run.tools(
    {
      pay: tool({
        description: "d",
        inputSchema: z.object({ n: z.number() }),
        execute: async ({ n }) => {
          is<Eq<typeof n, number>>();
          return n;
        },
      }),
    },
    { pay: "effect" },
  );

  const result = await generateText({
    model,
    prompt: "pay",
    tools: guarded,
    ...run.loop({ stopWhen: stepCountIs(5) }),
  });
  for (const found of result.toolResults) {
    if (found.dynamic) continue;
    if (found.toolName === "charge") {
      is<Eq<typeof found.output, { receipt: string }>>();
      is<Eq<typeof found.input, { cents: number }>>();
    }
  }

  const mended = await run.repair(messages);
  is<Eq<typeof mended, UIMessage[]>>();
  const stopped: StopCondition<Tools> = ({ steps }) => steps.some(({ text }) => text === "stop");
  const prepared: PrepareStepFunction<Tools> = ({ steps }) => ({ activeTools: steps.length > 1 ? ["charge"] : [] });
  const streamed = streamText({
    model,
    tools: guarded,
    messages: await convertToModelMessages(mended, { tools: guarded }),
    ...run.loop({ stopWhen: [stepCountIs(5), stopped], prepareStep: prepared }),
  });
  for await (const part of streamed.fullStream)
    if (part.type === "tool-result" && !part.dynamic && part.toolName === "report") {
      is<Eq<typeof part.output, { progress: number }>>();
    }
  streamed.toUIMessageStreamResponse({ originalMessages: mended, ...run.stream });
  streamText({
    model,
    prompt: "pay",
    tools: inline,
    ...run.loop({
      stopWhen: ({ steps }) => steps.length > 3,
      prepareStep: ({ stepNumber }) => (stepNumber > 1 ? { toolChoice: "none" as const } : undefined),
    }),
  });

  const agent = new Agent({ model, tools: guarded, ...run.loop({ stopWhen: stepCountIs(5) }) });
  const { toolCalls } = await agent.generate({ prompt: "pay" });
  for (const call of toolCalls)
    if (!call.dynamic && call.toolName === "charge") {
      is<Eq<typeof call.input, { cents: number }>>();
    }

  const charge = defineEffect({
    name: "charge",
    input: z.object({ orderId: z.string() }),
    run: async ({ orderId }, { idempotencyKey }) => ({ orderId, idempotencyKey }),
  });
  const effects = {
    pay: effectTool(charge, { description: "d", inputSchema: z.object({ orderId: z.string() }), run }),
  };
  effects satisfies ToolSet;
  is<
    Eq<
      InferUITools<typeof effects>["pay"],
      { input: { orderId: string }; output: Awaited<ReturnType<typeof charge.run>> }
    >
  >();
  streamText({ model, prompt: "pay", tools: run.tools(effects, { pay: "effect" }) });

  withRun(tp, { thread: "t" }, async (chat) => streamed.toUIMessageStreamResponse({ ...chat.stream }));
  const answer = await withChat(tp, { thread: "t" }, async (chat) => ({ text: chat.thread }));
  is<Eq<typeof answer, { text: string }>>();
  // @ts-expect-error: who waits for a value waits for its run
  withChat(tp, { thread: "t", waitUntil: () => undefined }, () => 1);

  // @ts-expect-error: every tool has a kind
  run.tools(tools, { charge: "effect", report: "effect", ask: "read" });
  // @ts-expect-error: "write" is none
  run.tools(tools, { ...kinds, charge: "write" });
  // @ts-expect-error: there is no such tool
  run.tools(tools, { ...kinds, refund: "effect" });
  // @ts-expect-error: rules are for tools of the set
  run.tools(tools, kinds, { refund: { waitMs: 1 } });
  // @ts-expect-error: the key gets the tool's input
  run.tools(tools, kinds, { charge: { key: ({ amount }) => `charge:${amount}` } });
  // @ts-expect-error: a key is a text
  guardTool("charge", tools.charge, { key: ({ cents }) => cents, run });
  // @ts-expect-error: scope without turn
  guardTool("charge", tools.charge, { tp, scope: "chat" });
  // @ts-expect-error: no place
  guardTools(tools, { kinds });
  // @ts-expect-error: kinds are not rules
  run.tools(tools, kinds, { charge: { kind: "read" } });
  // @ts-expect-error: with conditions of ours, the default of the SDK is off
  run.loop({});
  // @ts-expect-error: a condition says yes or no
  run.loop({ stopWhen: () => "yes" });
  // @ts-expect-error: one input for another
  one satisfies Tools["report"];
}
