import { type StructuredToolInterface, tool } from "@langchain/core/tools";
import {
  type BaseCheckpointSaver,
  END,
  type LangGraphRunnableConfig,
  MessagesAnnotation,
  type RetryPolicy,
  START,
  StateGraph,
} from "@langchain/langgraph";
import { createReactAgent, ToolNode, toolsCondition } from "@langchain/langgraph/prebuilt";
import { defineEffect, type Twiceproof } from "@twiceproof/core";
import { z } from "zod";
import {
  effectTool,
  guardCheckpointer,
  guardGraph,
  guardTool,
  guardToolNode,
  type ToolRules,
} from "../../src/index.ts";
import type { ScriptedModel } from "./model.ts";

/** The tool that must not run twice, and those that stand beside it. All take `{ n }`. */
export interface Tools {
  readonly charge: (input: Input, config: LangGraphRunnableConfig) => unknown;
  readonly rules?: ToolRules<never>;
  readonly others?: Readonly<Record<string, (input: Input, config: LangGraphRunnableConfig) => unknown>>;
}

interface Input {
  readonly n: number;
}

export interface Scene extends Tools {
  readonly tp: Twiceproof;
  readonly model: ScriptedModel;
  readonly saver: BaseCheckpointSaver;
  readonly retryPolicy?: RetryPolicy;
  readonly timeout?: { readonly runTimeout: number };
  readonly inDoubt?: "throw" | "stop";
}

/** What the tests need of a graph, whatever it is made by. */
export interface Runnable {
  invoke(input: unknown, config: object): Promise<State>;
  stream(input: unknown, config: object): Promise<AsyncIterable<unknown>>;
  getState(config: object): Promise<{ readonly next: readonly string[]; readonly values: State }>;
}

interface State {
  readonly messages: readonly { readonly type: string; readonly content: unknown; readonly id?: string }[];
  readonly __interrupt__?: readonly { readonly id: string; readonly value: unknown }[];
}

const schema = z.object({ n: z.number() });

function plain(name: string, run: Tools["charge"]): StructuredToolInterface {
  return tool(run as never, { name, description: name, schema }) as StructuredToolInterface;
}

export function others({ others = {} }: Tools): StructuredToolInterface[] {
  return Object.entries(others).map(([name, run]) => plain(name, run));
}

export function unguarded(scene: Scene): StructuredToolInterface {
  return plain("charge", scene.charge);
}

export function byEffectTool(scene: Scene): StructuredToolInterface {
  const { tp, rules: { mayInterrupt, ...rules } = {} } = scene;
  const run = (input: Input, { signal }: { signal: AbortSignal }) => scene.charge(input, { signal });
  const effect = defineEffect({ name: "charge", input: schema, ...(rules as ToolRules<Input>), run });
  return effectTool(effect, { tp, description: "charge", mayInterrupt }) as never;
}

export function byGuardTool(scene: Scene): StructuredToolInterface {
  return guardTool(unguarded(scene), { tp: scene.tp, ...(scene.rules as ToolRules) });
}

/** A graph of its user's own: a model, the prebuilt ToolNode, and an edge back. */
export function handBuilt(scene: Scene, node: ToolNode): Runnable {
  const { model, saver, timeout, retryPolicy } = scene;
  const graph = new StateGraph(MessagesAnnotation)
    .addNode("agent", async ({ messages }) => ({ messages: await model.invoke(messages) }))
    .addNode("tools", node, { ...(retryPolicy && { retryPolicy }), ...(timeout && { timeout }) } as object)
    .addEdge(START, "agent")
    .addConditionalEdges("agent", toolsCondition, ["tools", END])
    .addEdge("tools", "agent")
    .compile({ checkpointer: saver });
  return graph as unknown as Runnable;
}

export function toolNode(tools: StructuredToolInterface[], handleToolErrors = false): ToolNode {
  return new ToolNode(tools, { handleToolErrors });
}

/** Each way to guard a graph's tools that needs LangGraph alone. */
export const ways: Readonly<Record<string, (scene: Scene) => Runnable>> = {
  "createReactAgent with effectTool": (scene) => react(guarded(scene), byEffectTool(scene)),
  "createReactAgent with guardTool": (scene) => react(guarded(scene), byGuardTool(scene)),
  "a graph of one's own with effectTool": (scene) =>
    guardedGraph(scene, handBuilt(guarded(scene), toolNode([byEffectTool(scene), ...others(scene)]))),
  "a graph of one's own with guardTool": (scene) =>
    guardedGraph(scene, handBuilt(guarded(scene), toolNode([byGuardTool(scene), ...others(scene)]))),
  "a graph of one's own with guardToolNode": (scene) =>
    guardedGraph(scene, handBuilt(guarded(scene), nodeGuarded(scene))),
};

function nodeGuarded(scene: Scene): ToolNode {
  const reads = Object.fromEntries(Object.keys(scene.others ?? {}).map((name) => [name, "read" as const]));
  return guardToolNode(toolNode([unguarded(scene), ...others(scene)]), {
    tp: scene.tp,
    kinds: { charge: "effect", ...reads },
    rules: { charge: scene.rules ?? {} },
  });
}

export const withoutGuard: Readonly<Record<string, (scene: Scene) => Runnable>> = {
  createReactAgent: (scene) => reactAgent(scene, unguarded(scene)),
  "a graph of one's own": (scene) => handBuilt(scene, toolNode([unguarded(scene), ...others(scene)])),
};

export function guarded(scene: Scene): Scene {
  return { ...scene, saver: guardCheckpointer(scene.saver, { tp: scene.tp }) };
}

export function guardedGraph(scene: Scene, graph: Runnable): Runnable {
  const { tp, inDoubt } = scene;
  return guardGraph(graph, { tp, inDoubt });
}

function react(scene: Scene, charge: StructuredToolInterface): Runnable {
  return guardedGraph(scene, reactAgent(scene, charge));
}

function reactAgent(scene: Scene, charge: StructuredToolInterface): Runnable {
  const agent = createReactAgent({
    llm: scene.model,
    tools: toolNode([charge, ...others(scene)]),
    checkpointSaver: scene.saver,
  });
  if (scene.retryPolicy) agent.retryPolicy = scene.retryPolicy;
  return agent as unknown as Runnable;
}
