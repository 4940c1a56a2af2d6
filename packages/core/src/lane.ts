import { afterTurn, type Stopwatch, stopwatch, timer } from "./clock.ts";
import { isFinal } from "./errors.ts";

/** A batch that has not answered for this long no longer holds up the next one. */
const slowMs = 100;
const maxItems = 500;
const maxWeight = 1_048_576;

/** Set by a caller that no longer waits: what is not under way yet is not sent. */
export interface Caller {
  gaveUp: boolean;
  /** Its batch did not answer, and may hang on a neighbour's blocked row: it goes by itself (promise 16). */
  readonly alone?: boolean;
}

interface Entry<Item, Answer> {
  readonly item: Item;
  readonly caller: Caller;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
}

export type Lane<Item, Answer> = (item: Item, caller?: Caller) => Promise<Answer>;

/**
 * Group commit. What arrives during one turn of the event loop, or while a batch is under way, goes as one list: no timer
 * gathers, and one item alone leaves as soon as the turn is over. An id is in a list at most once. When a list fails,
 * each of its items is asked again alone, so that one bad item fails no neighbour (promise 16).
 */
export function lane<Item extends { readonly id: string }, Answer>(
  send: (items: readonly Item[]) => Promise<readonly Answer[]>,
  weigh: (item: Item) => number = () => 0,
): Lane<Item, Answer> {
  let waiting: Entry<Item, Answer>[] = [];
  let scheduled = false;
  let current: { readonly elapsed: Stopwatch } | undefined;
  let cancelSlow: (() => void) | undefined;

  function schedule(): void {
    if (waiting.length === 0 || scheduled) return;
    if (current !== undefined) {
      cancelSlow ??= timer(slowMs - current.elapsed(), overtake);
      return;
    }
    scheduled = true;
    afterTurn(() => {
      scheduled = false;
      flush();
    });
  }

  function overtake(): void {
    cancelSlow = undefined;
    current = undefined;
    schedule();
  }

  function flush(): void {
    const batch = take();
    if (batch.length === 0) return;
    const mine = { elapsed: stopwatch() };
    current = mine;
    void deliver(batch).then(() => {
      if (current !== mine) return;
      current = undefined;
      cancelSlow?.();
      cancelSlow = undefined;
      schedule();
    });
    schedule();
  }

  function take(): Entry<Item, Answer>[] {
    const batch = new Map<string, Entry<Item, Answer>>();
    const later: Entry<Item, Answer>[] = [];
    let weight = 0;
    for (const entry of waiting) {
      if (entry.caller.gaveUp) {
        entry.reject(new Error("given up before it was sent"));
        continue;
      }
      const full = batch.size > 0 && (batch.size >= maxItems || weight + weigh(entry.item) > maxWeight);
      if (full || batch.has(entry.item.id)) later.push(entry);
      else {
        batch.set(entry.item.id, entry);
        weight += weigh(entry.item);
      }
    }
    waiting = later;
    return [...batch.values()];
  }

  async function deliver(batch: readonly Entry<Item, Answer>[]): Promise<void> {
    try {
      const answers = await send(batch.map((entry) => entry.item));
      if (answers.length !== batch.length) throw new TypeError("the store answered another number of items than asked");
      batch.forEach((entry, index) => void entry.resolve(answers[index] as Answer));
    } catch (error) {
      if (batch.length === 1 || (isFinal(error) && error.code !== "INVALID_ARGUMENT"))
        for (const entry of batch) entry.reject(error);
      else await Promise.all(batch.map((entry) => (entry.caller.gaveUp ? entry.reject(error) : deliver([entry]))));
    }
  }

  return (item, caller = { gaveUp: false }) =>
    new Promise((resolve, reject) => {
      const entry = { item, caller, resolve, reject };
      if (caller.alone) {
        void deliver([entry]);
        return;
      }
      waiting.push(entry);
      schedule();
    });
}
