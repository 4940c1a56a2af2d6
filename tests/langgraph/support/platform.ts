import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createTwiceproof, type Twiceproof } from "@twiceproof/core";
import { sqliteStore } from "@twiceproof/store-sqlite";
import { until } from "./place.ts";
import { startServer } from "./serve.ts";
import { metFile, readLines, workFile } from "./served-files.ts";

export type Graph = "plain" | "guarded" | "keyed";

export interface Run {
  readonly run_id: string;
  readonly status: "pending" | "running" | "success" | "error" | "interrupted";
}

export interface State {
  readonly next: readonly string[];
  readonly values: { readonly messages?: readonly { readonly type: string; readonly content: string }[] };
  readonly tasks: readonly { readonly interrupts: readonly { readonly id?: string; readonly value?: unknown }[] }[];
}

export interface RunOptions {
  /** What the user says; without, the run goes on from the last checkpoint. */
  readonly topic?: string;
  /** The answers to interrupts. */
  readonly resume?: unknown;
  readonly strategy?: "reject" | "enqueue" | "interrupt" | "rollback";
}

/** The public LangGraph dev server in a process of its own, spoken to by HTTP, as clients do. */
export interface Platform {
  /** For what operators do. */
  readonly tp: Twiceproof;
  newThread(): Promise<string>;
  /** The answer's status, and the run, if it was taken. */
  run(graph: Graph, thread: string, options: RunOptions): Promise<{ readonly status: number; readonly run: Run }>;
  /** A run of a client that reads its stream, and whose leaving cancels it. */
  stream(graph: Graph, thread: string, options: RunOptions): Promise<{ readonly run: Run; leave(): void }>;
  cancel(thread: string, run: Run): Promise<void>;
  delete(thread: string, run: Run): Promise<void>;
  statusOf(thread: string, run: Run): Promise<Run["status"]>;
  /** Waits until the run is over. */
  ended(thread: string, run: Run): Promise<Run["status"]>;
  state(thread: string): Promise<State>;
  threadStatus(thread: string): Promise<"idle" | "busy" | "interrupted" | "error">;
  /** How often the tool worked on this topic. */
  acts(topic: string): number;
  /** Waits until the tool did so for the first, second … time. */
  acted(topic: string, times: number): Promise<void>;
  /** Waits until a claim of this thread met somebody else's. */
  met(thread: string): Promise<void>;
  /** Lets the tool finish on this topic. */
  finish(topic: string): void;
  /** Waits until the server's files have the run, and the checkpoint that the tool hangs on: it saves them every few seconds. */
  saved(thread: string, run: Run): Promise<void>;
  /** SIGKILL, and a new server on the same folder. */
  killAndRestart(): Promise<void>;
}

/** What is given to `onEnd` is called in reverse order when the tests are over, however they end. */
export async function startPlatform(onEnd: (run: () => unknown) => void): Promise<Platform> {
  const folder = mkdtempSync(join(tmpdir(), "twiceproof-"));
  onEnd(() => rmSync(folder, { recursive: true, force: true }));
  const tp = createTwiceproof({ store: sqliteStore(join(folder, "claims.db")) });
  onEnd(() => tp.close({ graceMs: 0 }));
  let server = await startServer(folder);
  onEnd(() => server.kill());

  async function ask(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<Response> {
    return await fetch(`${server.url}/threads${path}`, {
      method,
      headers: { "content-type": "application/json" },
      body: body === undefined ? null : JSON.stringify(body),
      signal: signal ?? null,
    });
  }
  const need = async <T>(asked: Promise<Response>): Promise<T> => (await (await ok(asked)).json()) as T;
  const statusOf: Platform["statusOf"] = async (thread, { run_id }) =>
    (await need<Run>(ask("GET", `/${thread}/runs/${run_id}`))).status;
  const acts: Platform["acts"] = (topic) => readLines(workFile(folder)).filter((line) => line === topic).length;

  return {
    tp,
    newThread: async () => (await need<{ thread_id: string }>(ask("POST", "", {}))).thread_id,
    async run(graph, thread, options) {
      const response = await ask("POST", `/${thread}/runs`, runBody(graph, options));
      return { status: response.status, run: (response.ok ? await response.json() : null) as Run };
    },
    async stream(graph, thread, options) {
      const leaving = new AbortController();
      const body = { ...runBody(graph, options), on_disconnect: "cancel" };
      const { headers } = await ok(ask("POST", `/${thread}/runs/stream`, body, leaving.signal));
      const run_id = headers.get("content-location")?.split("/").at(-1) ?? "";
      return { run: { run_id, status: "pending" }, leave: () => leaving.abort() };
    },
    cancel: async (thread, { run_id }) => void (await ask("POST", `/${thread}/runs/${run_id}/cancel?wait=1`)),
    delete: async (thread, { run_id }) => void (await ask("DELETE", `/${thread}/runs/${run_id}`)),
    statusOf,
    async ended(thread, run) {
      let status: Run["status"] = "pending";
      await until("the end of a run", async () => {
        status = await statusOf(thread, run);
        return status !== "pending" && status !== "running";
      });
      return status;
    },
    state: (thread) => need<State>(ask("GET", `/${thread}/state`)),
    threadStatus: async (thread) => (await need<{ status: "idle" }>(ask("GET", `/${thread}`))).status,
    acts,
    acted: (topic, times) => until(`look ${times} at ${topic}`, () => acts(topic) >= times),
    met: (thread) => until("a claim that meets another's", () => readLines(metFile(folder)).includes(thread)),
    finish: (topic) => writeFileSync(join(folder, topic), ""),
    async saved(thread, { run_id }) {
      const files = [".langgraphjs_ops.json", ".langgraphjs_api.checkpointer.json"];
      const [ops, checkpoints] = files.map((name) => join(folder, ".langgraph_api", name)) as [string, string];
      await until(
        "the run in the server's files",
        () => read(ops).includes(run_id) && read(checkpoints).includes(thread),
      );
    },
    async killAndRestart() {
      await server.kill();
      server = await startServer(folder);
    },
  };
}

async function ok(asked: Promise<Response>): Promise<Response> {
  const response = await asked;
  if (!response.ok) throw new Error(`the server answered ${response.status}: ${await response.text()}`);
  return response;
}

function runBody(graph: Graph, { topic, resume, strategy = "reject" }: RunOptions) {
  // The client names its message: a chat that sends it again sends it under the same id.
  const input = topic === undefined ? null : { messages: [{ role: "user", id: `user-${topic}`, content: topic }] };
  return {
    assistant_id: graph,
    input,
    multitask_strategy: strategy,
    ...(resume !== undefined && { command: { resume } }),
  };
}

function read(file: string): string {
  return existsSync(file) ? readFileSync(file, "utf8") : "";
}
