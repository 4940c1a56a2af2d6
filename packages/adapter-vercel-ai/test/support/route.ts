import { type ChatRun, type ChatRunOptions, type Kinds, type RulesOf, withRun } from "@twiceproof/adapter-vercel-ai";
import type { Twiceproof } from "@twiceproof/core";
import type { ChatMessage } from "../../src/sdk.ts";
import type { Model } from "./model.ts";
import type { Sdk } from "./sdk.ts";
import { until } from "./world.ts";

type Tools = Record<string, object>;

export interface RouteOptions extends Partial<ChatRunOptions> {
  readonly tp: Twiceproof;
  readonly model: Model;
  readonly tools: Tools;
  readonly kinds?: Kinds<Tools>;
  readonly rules?: RulesOf<Tools>;
  /** False: `streamText` goes on as it likes. */
  readonly loop?: false;
  /** More options of `streamText`. */
  readonly more?: object;
  readonly onRun?: (run: ChatRun) => void;
  /** The chat as it is when the run has it; by default what was posted. */
  readonly load?: () => readonly ChatMessage[];
  readonly save?: (messages: readonly ChatMessage[]) => void | Promise<void>;
}

interface Chunk {
  readonly type: string;
  readonly toolCallId?: string;
  readonly output?: unknown;
  readonly errorText?: string;
  readonly preliminary?: boolean;
}

export interface Answer {
  readonly status: number;
  readonly chunks: readonly Chunk[];
  /** The chat as the handler saved it. */
  readonly saved: readonly ChatMessage[];
}

export const user = (id: string, text: string): ChatMessage => ({ id, role: "user", parts: [{ type: "text", text }] });

/** The route handler of the README. */
export function respond(sdk: Sdk, messages: readonly ChatMessage[], options: RouteOptions): Promise<Response> {
  const {
    tp,
    model,
    tools,
    kinds = everyEffect,
    rules,
    loop,
    more,
    onRun,
    load = () => messages,
    save,
    thread = "chat-1",
    ...place
  } = options;
  return withRun(tp, { thread, ...place }, async (run) => {
    onRun?.(run);
    const guarded = run.tools(tools, kinds, rules);
    const mended = await run.repair(load());
    const stopWhen = sdk.stepCountIs(5);
    const result = sdk.streamText({
      model: model.model,
      tools: guarded,
      messages: await sdk.convertToModelMessages(mended, { tools: guarded }),
      onError: () => undefined,
      ...(loop === false ? { stopWhen } : run.loop({ stopWhen })),
      ...more,
    });
    return result.toUIMessageStreamResponse({
      originalMessages: mended,
      generateMessageId: () => `answer-${messages.length}`,
      onFinish: async ({ messages: all }: { messages: readonly ChatMessage[] }) => await save?.(all),
      ...run.stream,
    });
  });
}

export const everyEffect = (): "effect" => "effect";

/** Posts as a page does, and reads to the end. The run is over when it resolves. */
export async function post(sdk: Sdk, messages: readonly ChatMessage[], options: RouteOptions): Promise<Answer> {
  let saved: readonly ChatMessage[] = [];
  let over = false;
  const response = await respond(sdk, messages, {
    ...options,
    waitUntil: (done) => done.then(() => (over = true)),
    save: async (all) => {
      saved = all;
      await options.save?.(all);
    },
  });
  const chunks = chunksOf(await response.text());
  await until(() => over);
  return { status: response.status, chunks, saved };
}

function chunksOf(text: string): Chunk[] {
  return text
    .split("\n")
    .filter((line) => line.startsWith("data: {"))
    .map((line) => JSON.parse(line.slice("data: ".length)) as Chunk);
}

export function outputs({ chunks }: Answer): unknown[] {
  return chunks.filter(({ type }) => type === "tool-output-available").map(({ output }) => output);
}

export function errors({ chunks }: Answer): (string | undefined)[] {
  return chunks
    .filter(({ type }) => type === "tool-output-error" || type === "error")
    .map(({ errorText }) => errorText);
}
