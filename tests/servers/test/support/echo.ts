import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

export interface Echo {
  readonly address: string;
  /** Everything that has arrived, of all connections. */
  readonly received: () => string;
  close(): Promise<void>;
}

/** Answers each piece with the same piece. */
export async function startEcho(): Promise<Echo> {
  let received = "";
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("data", (chunk) => {
      received += chunk;
      socket.write(chunk);
    });
    socket.on("error", () => undefined);
    socket.on("close", () => sockets.delete(socket));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    address: `127.0.0.1:${port}`,
    received: () => received,
    close: async () => {
      if (!server.listening) return;
      const closed = once(server, "close");
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

export interface Client {
  send(text: string): void;
  /** Everything that came back. */
  readonly answers: () => string;
  /** How it ended for the client; undefined while it is open. */
  readonly ended: () => "reset" | "closed" | undefined;
  destroy(): void;
}

export async function connectTo(port: number): Promise<Client> {
  const socket = connect(port, "127.0.0.1");
  let answers = "";
  let ended: "reset" | "closed" | undefined;
  socket.on("data", (chunk) => {
    answers += chunk;
  });
  socket.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "ECONNRESET") ended = "reset";
  });
  socket.on("close", () => {
    ended ??= "closed";
  });
  try {
    await once(socket, "connect");
  } catch (error) {
    // A reset may come before the connection is known here.
    if ((error as NodeJS.ErrnoException).code !== "ECONNRESET") throw error;
  }
  return {
    send: (text) => socket.write(text),
    answers: () => answers,
    ended: () => ended,
    destroy: () => socket.destroy(),
  };
}
