import type { StructuredToolInterface } from "@langchain/core/tools";
import type { RetryPolicy } from "@langchain/langgraph";
import { createAgent, createMiddleware, type toolRetryMiddleware } from "langchain";
import { guardMiddleware } from "../../src/index.ts";
import {
  byEffectTool,
  byGuardTool,
  guarded,
  guardedGraph,
  others,
  type Runnable,
  type Scene,
  unguarded,
} from "./graphs.ts";

/** Each way to guard the tools of langchain's `createAgent`. */
export const agentWays: Readonly<Record<string, (scene: Scene) => Runnable>> = {
  "createAgent with effectTool": (scene) => agent(scene, byEffectTool(scene)),
  "createAgent with guardTool": (scene) => agent(scene, byGuardTool(scene)),
  "createAgent with guardMiddleware": (scene) => agent(scene, unguarded(scene), [middleware(scene)]),
  "createAgent v1 with guardMiddleware": (scene) => agent(scene, unguarded(scene), [middleware(scene)], "v1"),
};

export const agentsWithoutGuard: Readonly<Record<string, (scene: Scene) => Runnable>> = {
  createAgent: (scene) => agentOf(scene, unguarded(scene)),
  "createAgent v1": (scene) => agentOf(scene, unguarded(scene), [], "v1"),
};

export type Middleware = ReturnType<typeof toolRetryMiddleware> | ReturnType<typeof guardMiddleware>;

export function middleware(scene: Scene): ReturnType<typeof guardMiddleware> {
  const reads = Object.fromEntries(Object.keys(scene.others ?? {}).map((name) => [name, "read" as const]));
  return guardMiddleware({
    tp: scene.tp,
    kinds: { charge: "effect", ...reads },
    rules: { charge: scene.rules ?? {} },
  });
}

export function agent(
  scene: Scene,
  charge: StructuredToolInterface,
  list: readonly Middleware[] = [],
  version: "v1" | "v2" = "v2",
): Runnable {
  return guardedGraph(scene, agentOf(guarded(scene), charge, list, version));
}

export function agentOf(
  scene: Scene,
  charge: StructuredToolInterface,
  list: readonly Middleware[] = [],
  version: "v1" | "v2" = "v2",
): Runnable {
  // With any such middleware langchain lets a tool's error out, where it would tell the model.
  const passing = createMiddleware({ name: "Passing", wrapToolCall: (request, handler) => handler(request) });
  const made = createAgent({
    model: scene.model,
    tools: [charge, ...others(scene)],
    middleware: [...list, passing],
    checkpointer: scene.saver,
    version,
  } as never) as unknown as Runnable & { readonly graph: { retryPolicy?: RetryPolicy } };
  if (scene.retryPolicy) made.graph.retryPolicy = scene.retryPolicy;
  return made;
}
