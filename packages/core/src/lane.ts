import { afterTurn, type Stopwatch, stopwatch, timer } from "./clock.ts";
import { isFinal } from "./errors.ts";

/** A batch that has not answered for this long no longer holds up the next one. */
const slowMs = 100;
/** A list of fewer costs a store more in two than it gains. */
const worthDividing = 64;
const maxItems = 500;
const maxWeight = 1_048_576;

/** What a caller and its lane tell each other. */
export interface Caller {
  /** The caller no longer waits: what is not under way yet is not sent. */
  gaveUp: boolean;
  /** Its batch did not answer, and may hang on a neighbour's blocked row: it goes by itself (promise 16). */
  readonly alone?: boolean;
  /** Set while the item waits for its turn; `onSent` is called when it leaves. Until then the store is not silent. */
  queued?: boolean;
  onSent?: (() => void) | undefined;
}

interface Entry<Item, Answer> {
  readonly item: Item;
  readonly caller: Caller;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
  /** Of the same id, who came later: they wait to see whether this one's answer is theirs too. */
  others: Entry<Item, Answer>[] | undefined;
}

export type Lane<Item, Answer> = (item: Item, caller?: Caller) => Promise<Answer>;

export interface LaneOptions<Item, Answer> {
  /** What counts towards the weight of a list. */
  readonly weigh?: (item: Item) => number;
  /** Whether the answer to one item is one to another of the same id as well, which waited with it. By default it never is. */
  readonly answers?: (answer: Answer, other: Item) => boolean;
  /** No lists: each item goes alone, and waits for none before it. An answer is still one to others of its id. */
  readonly apart?: boolean;
  /** A long list goes as two at once. */
  readonly divides?: boolean;
}

/**
 * Group commit. What arrives during one turn of the event loop, or while a batch is under way, goes as one list: no timer
 * gathers, and one item alone leaves as soon as the turn is over. An id is in a list at most once. When a list fails,
 * each of its items is asked again alone, so that one bad item fails no neighbour (promise 16).
 *
 * Callers who are answered together ask together again, and the store idles while they are served: halved, the one half is
 * worked on while the answers of the other are handed out (a fifth to a quarter more pairs a second on PostgreSQL, from 64 callers on).
 */
export function lane<Item extends { readonly id: string }, Answer>(
  send: (items: readonly Item[]) => Promise<readonly Answer[]>,
  { weigh = () => 0, answers: answersAlso, apart = false, divides = false }: LaneOptions<Item, Answer> = {},
): Lane<Item, Answer> {
  /** By id, so that a thousand callers of one key cost no more than a thousand of as many keys. */
  let waiting = new Map<string, Entry<Item, Answer>>();
  let scheduled = false;
  let current: { readonly elapsed: Stopwatch } | undefined;
  let cancelSlow: (() => void) | undefined;

  function schedule(): void {
    if (waiting.size === 0 || scheduled) return;
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
    if (apart) {
      for (const entry of batch) void deliver([entry]);
      schedule();
      return;
    }
    const mine = { elapsed: stopwatch() };
    current = mine;
    const lists = divides && batch.length >= worthDividing ? halves(batch) : [batch];
    void Promise.all(lists.map(deliver)).then(() => {
      if (current !== mine) return;
      current = undefined;
      cancelSlow?.();
      cancelSlow = undefined;
      schedule();
    });
    schedule();
  }

  /** One of each id. */
  function take(): Entry<Item, Answer>[] {
    const batch: Entry<Item, Answer>[] = [];
    const again: Entry<Item, Answer>[] = [];
    let weight = 0;
    for (const [id, first] of waiting) {
      if (batch.length >= maxItems) break;
      weight += weigh(first.item);
      if (batch.length > 0 && weight > maxWeight) break;
      waiting.delete(id);
      const entry = willing(first, givenUp);
      if (entry === undefined) continue;
      batch.push(entry);
      if (entry.others === undefined || answersAlso !== undefined) continue;
      again.push(chained(entry.others) as Entry<Item, Answer>);
      entry.others = undefined;
    }
    // A map that outgrows its table leaves the old one pointing at the new one, and so at all that is in it: a map that was
    // used for good made each scavenge copy what was long answered (20 ms at 20,000 pairs a second, instead of 2).
    if (waiting.size === 0) waiting = new Map();
    for (const entry of again) waiting.set(entry.item.id, entry);
    return batch;
  }

  async function deliver(batch: readonly Entry<Item, Answer>[]): Promise<void> {
    try {
      for (const entry of batch) each(entry, ({ caller }) => caller.onSent?.());
      const answers = await send(batch.map(({ item }) => item));
      if (answers.length !== batch.length) throw new TypeError("the store answered another number of items than asked");
      for (const [index, entry] of batch.entries()) give(answers[index] as Answer, entry);
    } catch (error) {
      if (batch.length === 1 || (isFinal(error) && error.code !== "INVALID_ARGUMENT"))
        for (const entry of batch) each(entry, ({ reject }) => reject(error));
      else await Promise.all(batch.map((entry) => retry(entry, error)));
    }
  }

  async function retry(entry: Entry<Item, Answer>, error: unknown): Promise<void> {
    const left = willing(entry, () => error);
    if (left !== undefined) await deliver([left]);
  }

  /** Whoever it does not answer asks for itself. */
  function give(answer: Answer, first: Entry<Item, Answer>): void {
    first.resolve(answer);
    if (first.others === undefined) return;
    const unanswered: Entry<Item, Answer>[] = [];
    for (const other of first.others) {
      if (answersAlso?.(answer, other.item)) other.resolve(answer);
      else unanswered.push(other);
    }
    const later = waiting.get(first.item.id);
    if (later !== undefined) each(later, (entry) => unanswered.push(entry));
    const next = chained(unanswered);
    if (next === undefined) return;
    waiting.set(next.item.id, next);
    schedule();
  }

  return (item, caller = { gaveUp: false }) =>
    new Promise((resolve, reject) => {
      const entry: Entry<Item, Answer> = { item, caller, resolve, reject, others: undefined };
      if (caller.alone) {
        void deliver([entry]);
        return;
      }
      caller.queued = true;
      const first = waiting.get(item.id);
      if (first === undefined) waiting.set(item.id, entry);
      else if (first.others === undefined) first.others = [entry];
      else first.others.push(entry);
      schedule();
    });
}

function halves<T>(list: readonly T[]): readonly (readonly T[])[] {
  const half = Math.ceil(list.length / 2);
  return [list.slice(0, half), list.slice(half)];
}

/** The others in the first one; nearly always it is alone, and needs no list (see `reach`). */
function chained<Item, Answer>([first, ...others]: readonly Entry<Item, Answer>[]): Entry<Item, Answer> | undefined {
  if (first !== undefined) first.others = others.length > 0 ? others : undefined;
  return first;
}

/** Without those who have given up, who are told why. */
function willing<Item, Answer>(first: Entry<Item, Answer>, why: () => unknown): Entry<Item, Answer> | undefined {
  if (first.others === undefined && !first.caller.gaveUp) return first;
  const all: Entry<Item, Answer>[] = [];
  each(first, (entry) => {
    if (entry.caller.gaveUp) entry.reject(why());
    else all.push(entry);
  });
  return chained(all);
}

function each<Item, Answer>(first: Entry<Item, Answer>, visit: (entry: Entry<Item, Answer>) => void): void {
  visit(first);
  if (first.others !== undefined) for (const other of first.others) visit(other);
}

function givenUp(): Error {
  return new Error("given up before it was sent");
}
