import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import {
  type Behaviour,
  type Direction,
  type Hook,
  joinServer,
  type Proxied,
  type ProxiedConnection,
} from "./proxied.ts";

export type { ProxiedConnection };

export interface TcpProxy {
  /** The same address, through this proxy. */
  url(target: string): string;
  readonly port: number;
  /** How many clients are connected now. */
  readonly connections: number;
  /** Resets every open connection. New ones are let in. */
  cut(): void;
  /** From now on new connections are reset. */
  refuse(): void;
  /** From now on each answer comes this much later. */
  delay(answersMs: number): void;
  /** From now on everything in this direction gets lost. */
  swallow(direction: Direction): void;
  /** Takes back refuse, delay and swallow, for new data. */
  pass(): void;
  /**
   * Acts each time a piece of a request with this text was forwarded, before any answer to it is. The pieces that
   * follow, of a request of more than 64 KiB, may be missing; a server may run the request or not.
   */
  onRequest(text: string, act: (connection: ProxiedConnection) => void): () => void;
  /** Acts each time the first piece of an answer to a request with this text is there, before it is passed on. */
  onAnswer(text: string, act: (connection: ProxiedConnection) => void): () => void;
  close(): Promise<void>;
}

function addressOf(target: string): { readonly host: string; readonly port: number } {
  const { protocol, hostname, port } = new URL(target.includes("://") ? target : `tcp://${target}`);
  const usual = protocol.startsWith("postgres") ? 5432 : 3306;
  return { host: hostname, port: port === "" ? usual : Number(port) };
}

/** A TCP proxy in front of a server: a URL, or "host:port". */
export async function startProxy(target: string): Promise<TcpProxy> {
  const { host, port: targetPort } = addressOf(target);
  const behaviour: Behaviour = { hooks: new Set(), swallowed: new Set(), delayMs: 0 };
  const open = new Set<Proxied>();
  let refuses = false;

  const server = createServer({ allowHalfOpen: true }, (client) => {
    if (refuses) {
      client.on("error", () => undefined);
      client.resetAndDestroy();
      return;
    }
    const connection = joinServer(client, host, targetPort, behaviour, () => open.delete(connection));
    open.add(connection);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;

  const add = (hook: Hook): (() => void) => {
    behaviour.hooks.add(hook);
    return () => void behaviour.hooks.delete(hook);
  };
  return {
    port,
    get connections() {
      return open.size;
    },
    url: (address) => {
      const url = new URL(address);
      url.hostname = "127.0.0.1";
      url.port = `${port}`;
      return url.href;
    },
    cut: () => {
      for (const connection of open) connection.cut();
    },
    refuse: () => {
      refuses = true;
    },
    delay: (answersMs) => {
      behaviour.delayMs = answersMs;
    },
    swallow: (direction) => {
      behaviour.swallowed.add(direction);
    },
    pass: () => {
      refuses = false;
      behaviour.delayMs = 0;
      behaviour.swallowed.clear();
    },
    onRequest: (text, act) => add({ text, at: "requests", act }),
    onAnswer: (text, act) => add({ text, at: "answers", act }),
    close: async () => {
      const closed = once(server, "close");
      server.close();
      for (const connection of open) connection.destroy();
      await closed;
    },
  };
}
