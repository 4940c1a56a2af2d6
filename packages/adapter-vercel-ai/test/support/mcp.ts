import type { MCPTransport } from "mcp-v7";
import type { Sdk } from "./sdk.ts";

type Message = Parameters<MCPTransport["send"]>[0];

export interface McpServer {
  readonly client: Awaited<ReturnType<Sdk["createMCPClient"]>>;
  /** Calls that reached the server, by tool. */
  readonly calls: readonly string[];
}

const object = { type: "object", properties: {} };

/** An MCP server in this process, with its protocol, and the SDK's own client of it. */
export async function mcp(sdk: Sdk): Promise<McpServer> {
  const calls: string[] = [];
  const tools = [
    { name: "pay", description: "Pays", inputSchema: object, annotations: { readOnlyHint: false } },
    { name: "look", description: "Looks", inputSchema: object, annotations: { readOnlyHint: true } },
    { name: "put", description: "Puts", inputSchema: object, annotations: { idempotentHint: true } },
  ];

  function answer(method: string, params: Record<string, unknown>): object {
    switch (method) {
      case "initialize":
        return {
          protocolVersion: params.protocolVersion,
          capabilities: { tools: {} },
          serverInfo: { name: "shop", version: "1" },
        };
      case "tools/list":
        return { tools };
      case "tools/call":
        calls.push(String(params.name));
        return {
          content: [{ type: "text", text: `${params.name} ${calls.filter((it) => it === params.name).length}` }],
        };
    }
    throw new Error(`the server has no ${method}`);
  }

  const transport: MCPTransport = {
    start: async () => undefined,
    close: async () => transport.onclose?.(),
    async send(message: Message) {
      if (!("method" in message) || !("id" in message)) return;
      const { id, method, params = {} } = message;
      const result = answer(method, params);
      queueMicrotask(() => transport.onmessage?.({ jsonrpc: "2.0", id, result } as Message));
    },
  };
  return { client: await sdk.createMCPClient({ transport }), calls };
}
