import { type CoreSide, keys, type Side } from "./side.ts";

/** A store on its server, and the same two statements by hand beside it. */
export interface Subject {
  readonly name: SubjectName;
  /** Of the server or the library, and of the driver. */
  readonly versions: Readonly<Record<string, string>>;
  readonly core: CoreSide;
  /** An insert and an update by key, each sent as it is called for, through the driver's own pool, prepared. */
  readonly byHand: Side;
  /** Pairs a second by a program that does nothing else, with so many connections; undefined where there is none. */
  readonly pgbench?: ((connections: number) => Promise<number>) | undefined;
  /** On a connection that does nothing else. */
  countReplays(): Promise<Counted>;
  close(): Promise<void>;
}

export type SubjectName = "sqlite" | "postgres" | "mariadb" | "mysql";

/** What the server itself counted. */
export interface Counted {
  readonly replays: number;
  /** Null where there is no server to make a trip to. */
  readonly roundTrips: number | null;
  readonly written: number;
  /** What was read to tell. */
  readonly by: string;
}

/** Counts the replays of a hundred finished keys, each of which was replayed before. `count` must see a new key's writes. */
export async function countedReplays(
  core: CoreSide,
  count: (calls: () => Promise<number>) => Promise<Counted>,
): Promise<Counted> {
  const key = keys();
  const finish = async (each: string): Promise<void> => (await core.claim(each))();
  const finished = Array.from({ length: 100 }, key);
  for (const each of finished) await finish(each);
  const { written } = await count(() => finish(key()).then(() => 1));
  if (!(written > 0)) throw new Error("what a new key writes was not counted");
  const replay = async (): Promise<number> => {
    for (const each of finished) await core.replay(each);
    return finished.length;
  };
  await replay();
  return count(replay);
}
