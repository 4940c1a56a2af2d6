/** Where one server lives: everything it writes is in its directory, which is removed with it. */
export interface Place {
  readonly directory: string;
  readonly data: string;
  readonly password: string;
}

export interface Command {
  readonly command: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

/** How the binaries of one server are used. */
export interface Program {
  /** Writes a new data directory. */
  initialise(place: Place): Promise<void>;
  /** The server process, listening on this port of 127.0.0.1. */
  serve(place: Place, port: number, settings: Readonly<Record<string, string>>): Command;
  url(place: Place, port: number): string;
  /** Asks for an orderly end that does not wait for clients. */
  readonly endSignal: NodeJS.Signals;
  /** Ends it at once, when its data are to be removed. */
  readonly stopSignal: NodeJS.Signals;
  /** Frees what a killed server has left outside of its directory. */
  clear?(place: Place): void;
}

/** Makes ready, in the new directory of a server, whatever its program needs there. */
export type Prepare = (directory: string) => Program;
