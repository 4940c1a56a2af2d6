import { type Left, type Store, TwiceproofError } from "@twiceproof/core/store";
import { quotedSchema } from "./schema.ts";

/** A `Client` of pg. */
export interface PostgresListener {
  query(text: string): Promise<unknown>;
  on(event: "notification", heard: (message: Notification) => void): unknown;
  on(event: "error", failed: (error: Error) => void): unknown;
  off(event: "notification", heard: (message: Notification) => void): unknown;
}

interface Notification {
  readonly channel: string;
  readonly payload?: string | undefined;
}

export interface Listening {
  readonly watch: NonNullable<Store["watch"]>;
  close(): void;
}

/**
 * Hears of the locks that were freed while somebody waits. The channel has the schema's name, the payload is the lock's
 * id, version and token. Nothing is asked of the connection before the first watch, and nothing depends on it: who waits looks by itself as well.
 *
 * @throws TwiceproofError `INVALID_ARGUMENT`
 */
export function listening(client: PostgresListener, schema: string): Listening {
  if (typeof client?.query !== "function" || typeof client.on !== "function")
    throw new TwiceproofError("INVALID_ARGUMENT", "`listen` must be a connected Client of pg.");
  const watchers = new Map<string, Set<(left?: Left) => void>>();
  let listens = false;
  let isSetUp = false;

  function heard({ channel, payload = "" }: Notification): void {
    if (channel !== schema) return;
    const [id = "", ...how] = payload.split(" ");
    const left = leftOf(how);
    for (const wake of [...(watchers.get(id) ?? [])]) wake(left);
  }

  function listen(): void {
    if (!isSetUp) {
      isSetUp = true;
      client.on("notification", heard);
      // An `error` of a connection that nobody listens to ends the process, and a lost connection costs nothing here.
      client.on("error", () => undefined);
    }
    if (listens) return;
    listens = true;
    client.query(`listen ${quotedSchema(schema)}`).catch(() => {
      listens = false;
    });
  }

  return {
    watch(id, wake) {
      listen();
      const mine = watchers.get(id) ?? new Set();
      watchers.set(id, mine.add(wake));
      return () => {
        mine.delete(wake);
        if (mine.size === 0 && watchers.get(id) === mine) watchers.delete(id);
      };
    },
    close() {
      watchers.clear();
      if (!isSetUp) return;
      client.off("notification", heard);
      client.query(`unlisten ${quotedSchema(schema)}`).catch(() => undefined);
    },
  };
}

/** Whoever reaches the database may notify: what does not read as a version and a token is a plain call to look. */
function leftOf(how: readonly string[]): Left | undefined {
  const [version = Number.NaN, token = Number.NaN] = how.map(Number);
  return Number.isSafeInteger(version) && Number.isSafeInteger(token) ? { version, token } : undefined;
}
