import { createRequire } from "node:module";
import type { createMCPClient } from "mcp-v7";
import type { ChatMessage, StopCondition } from "../../src/sdk.ts";

/** What the suite uses of a version of the AI SDK: all six fit it, whatever their own types say. */
export interface Sdk {
  /** `ai 5.0.277`. */
  readonly title: string;
  readonly major: 5 | 6 | 7;
  /** Approvals can be signed: not in the floor of 6. */
  readonly signs: boolean;
  readonly tool: <T extends object>(tool: T) => T;
  readonly dynamicTool: <T extends object>(tool: T) => T & { readonly type: "dynamic" };
  readonly jsonSchema: (schema: object) => object;
  readonly stepCountIs: (count: number) => StopCondition;
  readonly generateText: (options: object) => Promise<Generated>;
  readonly streamText: (options: object) => Streamed;
  readonly Agent: new (
    options: object,
  ) => {
    generate(options: object): Promise<Generated>;
    stream(options: object): Streamed | Promise<Streamed>;
  };
  readonly convertToModelMessages: (messages: readonly ChatMessage[], options?: object) => Promise<object[]>;
  readonly createMCPClient: typeof createMCPClient;
  readonly Mock: new (options: object) => object;
}

export interface Generated {
  readonly text: string;
  readonly finishReason: string;
  readonly steps: readonly { readonly content: readonly { readonly type: string; readonly error?: unknown }[] }[];
}

interface Streamed {
  readonly fullStream: AsyncIterable<StreamPart>;
  toUIMessageStreamResponse(options: object): Response;
}

interface StreamPart {
  readonly type: string;
  readonly preliminary?: boolean;
  readonly output?: unknown;
  readonly error?: unknown;
}

export interface SdkModules {
  readonly ai: object;
  /** `ai/test`. */
  readonly kit: object;
  readonly mcp: object;
}

export function sdkOf(alias: string, modules: SdkModules): Sdk {
  const { version } = createRequire(import.meta.url)(`${alias}/package.json`) as { version: string };
  const major = Number.parseInt(version, 10) as Sdk["major"];
  const ai = modules.ai as Sdk & { readonly Experimental_Agent: Sdk["Agent"]; readonly ToolLoopAgent?: Sdk["Agent"] };
  const mcp = modules.mcp as Record<string, Sdk["createMCPClient"]>;
  const Mock = (modules.kit as Record<string, Sdk["Mock"]>)[`MockLanguageModelV${major - 3}`];
  const createMCPClient = mcp.createMCPClient ?? mcp.experimental_createMCPClient;
  if (Mock === undefined || createMCPClient === undefined) throw new Error(`${alias} lacks a mock or an MCP client`);
  return {
    ...ai,
    title: `ai ${version}`,
    major,
    signs: major === 7 || (major === 6 && version !== "6.0.0"),
    Agent: ai.ToolLoopAgent ?? ai.Experimental_Agent,
    Mock,
    createMCPClient,
  };
}
