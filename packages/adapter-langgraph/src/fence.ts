import type { BaseCheckpointSaver } from "@langchain/langgraph";
import { type ClaimRef, type Store, TwiceproofError } from "@twiceproof/core";
import { type FenceStatement, holdsFence } from "@twiceproof/core/store";
import { postgresFence } from "./fence-postgres.ts";
import { sqliteFence } from "./fence-sqlite.ts";

/**
 * `exact`: the checkpointer's own transaction checks that the run still holds its thread, and a takeover waits for it; for
 * checkpoints and claims in one database. `detects`: asked before and after each write, which a holder that stands still
 * in between slips through; it is told afterwards.
 */
export type FenceKind = "exact" | "detects";

export interface Fence {
  /** With a lock that is held. */
  kind(ref: ClaimRef): Promise<FenceKind>;
  /**
   * @throws TwiceproofError `RUN_LOST`: with an exact fence nothing was written
   */
  write<T, Saver extends BaseCheckpointSaver>(ref: ClaimRef, act: (saver: Saver) => Promise<T>): Promise<T>;
}

/** What is done for a kind of checkpointer whose transactions we know. */
export interface SaverFence {
  /** Whether this database has the claim. */
  finds(statement: FenceStatement): Promise<boolean>;
  /** The saver, whose transactions begin with this check. */
  view(check: TransactionCheck): BaseCheckpointSaver;
}

export interface TransactionCheck {
  readonly statement: FenceStatement;
  /** @throws when the statement brought no row: the transaction is to be rolled back. */
  readonly take: (held: boolean) => void;
}

export function fenceOf(saver: BaseCheckpointSaver, store: Store): Fence {
  const inside = postgresFence(saver) ?? sqliteFence(saver);
  /** Undefined until a lock that is held was looked for in the saver's database. */
  let known: FenceKind | undefined = inside === undefined || !store.fenceStatement ? "detects" : undefined;

  async function kind(ref: ClaimRef): Promise<FenceKind> {
    if (known !== undefined) return known;
    const statement = store.fenceStatement?.(ref);
    const found = statement !== undefined && (await inside?.finds(statement)) === true;
    // Not found: it is kept elsewhere, or it is no longer held.
    if (!found) await refuseLost(ref);
    known ??= found ? "exact" : "detects";
    return known;
  }

  async function refuseLost(ref: ClaimRef): Promise<void> {
    const [lock = null] = await store.get([ref.id]);
    if (!holdsFence(lock, ref)) throw overtaken();
  }

  return {
    kind,
    async write(ref, act) {
      const statement = store.fenceStatement?.(ref);
      if (inside === undefined || statement === undefined || (await kind(ref)) === "detects") {
        await refuseLost(ref);
        const result = await act(saver as never);
        await refuseLost(ref);
        return result;
      }
      let checked = false;
      const take = (held: boolean): void => {
        checked = true;
        if (!held) throw overtaken();
      };
      const result = await act(inside.view({ statement, take }) as never).catch(async (error: unknown) => {
        // Its transaction may have stood still until the server ended it.
        await refuseLost(ref);
        throw error;
      });
      if (checked) return result;
      // It does not write in a transaction that we know: all that can be done is to look, from now on before it as well.
      known = "detects";
      await refuseLost(ref);
      return result;
    },
  };
}

export function overtaken(): TwiceproofError {
  return new TwiceproofError(
    "RUN_LOST",
    "This run no longer holds its thread: it is over, or another run took it. Do not count its result as stored.",
  );
}
