import type { Store } from "../store.ts";

/** What somebody who proves a store has to bring: one database, reached in several ways. */
export interface StoreHarness {
  /** A further, independent connection to the same data, migrated. Closed by `close`, not by the laws. */
  connect(): Promise<Store>;
  /** As if the store's clock had passed every lease, of claims and of tickets. It may hit every row of the database; no row's version changes. */
  expireLeases(): Promise<void>;
  close(): Promise<void>;
}

/**
 * One rule that every store keeps. `check` rejects with an `AssertionError` when it is broken. Laws may share a database,
 * each with a namespace of its own, but run one after the other: `expireLeases` may hit all.
 */
export interface StoreLaw {
  /** Of the promise that it proves; 0 for what the interface alone asks (get, list, health, migrate). */
  readonly number: number;
  readonly name: string;
  check(harness: StoreHarness): Promise<void>;
}
