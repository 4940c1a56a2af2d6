/** `postgres` is the newest one, from npm; `postgres-distribution` the one that the operating system has. */
export type ServerName = "postgres" | "postgres-distribution" | "mariadb" | "mysql";

export interface Server {
  readonly name: ServerName;
  /** As the server itself says it, as "18.4" or "10.11.18-MariaDB-…". */
  readonly version: string;
  /** The address for its superuser, on 127.0.0.1 unless it was given from outside. */
  readonly url: string;
  /** Ends the server and removes its data. A server that was given from outside is left alone. */
  stop(): Promise<void>;
}

/** A server that belongs to one test, which may kill it. */
export interface OwnServer extends Server {
  readonly pid: number;
  /** SIGKILL to every process of the server, all at once. Resolves when they are gone; the data stay. */
  kill(): Promise<void>;
  /** Starts it again on its data and its port; ends it first when it still runs. */
  restart(): Promise<void>;
}

export interface StartOptions {
  /** Added to the server's own: `{ "wal_level": "logical" }`, `{ "innodb-lock-wait-timeout": "1" }`. */
  readonly settings?: Readonly<Record<string, string>>;
}

/** There is no such server and none can be made here; the message is one sentence that says how to get it. */
export class ServerUnavailable extends Error {
  override readonly name = "ServerUnavailable";
}
