import { connect, type Socket } from "node:net";

export type Direction = "requests" | "answers";

export interface ProxiedConnection {
  /** Resets it for the client, at once. What was forwarded still reaches the server, which then sees an end. */
  cut(): void;
  /** Nothing more arrives in this direction, and nobody is told. */
  swallow(direction: Direction): void;
}

/** Acts on a connection right after a text was forwarded, or right before the first answer to it is. */
export interface Hook {
  readonly text: string;
  readonly at: Direction;
  readonly act: (connection: ProxiedConnection) => void;
}

/** How all connections of a proxy behave at this moment. */
export interface Behaviour {
  readonly hooks: Set<Hook>;
  readonly swallowed: Set<Direction>;
  delayMs: number;
}

export interface Proxied extends ProxiedConnection {
  destroy(): void;
}

/** Joins a client to the server, until one of them ends. */
export function joinServer(
  client: Socket,
  host: string,
  port: number,
  behaviour: Behaviour,
  onClose: () => void,
): Proxied {
  const server = connect({ host, port, allowHalfOpen: true, noDelay: true });
  client.setNoDelay(true);
  const swallowed = new Set<Direction>();
  /** The end of what was forwarded, for texts that come in two pieces. */
  const tails = new Map<Hook, string>();
  let due: Hook[] = [];
  let answers = Promise.resolve();
  let isCut = false;

  const drops = (direction: Direction): boolean => swallowed.has(direction) || behaviour.swallowed.has(direction);
  const connection: Proxied = {
    cut: () => {
      isCut = true;
      client.resetAndDestroy();
      server.end();
      server.unref();
    },
    swallow: (direction) => {
      swallowed.add(direction);
    },
    destroy: () => {
      client.destroy();
      server.destroy();
    },
  };

  const matches = (hook: Hook, chunk: Buffer): boolean => {
    const text = Buffer.from(hook.text).toString("latin1");
    const seen = (tails.get(hook) ?? "") + chunk.toString("latin1");
    const found = seen.lastIndexOf(text);
    // What has matched is not looked at again.
    const rest = found < 0 ? seen : seen.slice(found + text.length);
    tails.set(hook, text.length > 1 ? rest.slice(1 - text.length) : "");
    return found >= 0;
  };

  client.on("data", (chunk) => {
    if (drops("requests")) return;
    server.write(chunk);
    const matching = [...behaviour.hooks].filter((hook) => matches(hook, chunk));
    due.push(...matching.filter((hook) => hook.at === "answers"));
    for (const hook of matching) if (hook.at === "requests") hook.act(connection);
  });
  server.on("data", (chunk) => {
    const hooks = due.filter((hook) => behaviour.hooks.has(hook));
    due = [];
    for (const hook of hooks) hook.act(connection);
    if (isCut || drops("answers")) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    if (behaviour.delayMs > 0) setTimeout(resolve, behaviour.delayMs);
    else resolve();
    // In their order, also when the delay becomes shorter.
    answers = Promise.all([answers, promise]).then(() => {
      if (!client.destroyed) client.write(chunk);
    });
  });

  client.on("end", () => server.end());
  server.on("end", () => {
    if (!drops("answers")) answers = answers.then(() => void client.end());
  });
  client.on("error", () => undefined); // "close" comes after it.
  server.on("error", () => client.resetAndDestroy());
  client.on("close", () => {
    if (!isCut) server.destroy();
    onClose();
  });
  return connection;
}
