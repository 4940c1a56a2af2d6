import { AsyncLocalStorage } from "node:async_hooks";
import type { TwiceproofEvent } from "./events.ts";
import { memoryStore } from "./memory-store.ts";
import type { Store } from "./store.ts";
import { assemble, type Twiceproof, type TwiceproofOptions } from "./twiceproof.ts";

/**
 * Where a worker dies: before its claim reaches the store; after the claim, before the effect; after the effect, before
 * the record reaches the store; after the record, before anybody hears of it.
 */
export type CrashPoint = (typeof points)[number];

const points = ["before-claim", "after-claim", "before-record", "after-record"] as const;

export interface TestTwiceproof {
  /** Hand it to the code under test in place of your own. It is always the living worker; after a crash, the next one. */
  readonly tp: Twiceproof;
  /**
   * Runs `body` in a worker that dies at the point: it never hears from the store again, renews nothing, and what it
   * awaits never comes. Resolves when it is dead; from then on `tp` is a new worker on the same store.
   *
   * @throws Error when the body ends without reaching the point
   */
  crash(point: CrashPoint, body: () => unknown): Promise<void>;
  /** Every lease is over, by the store's clock: what a crashed worker held is now in doubt. */
  lapse(): void;
  /** Moves the store's clock. Timers of this process are not touched. */
  advance(ms: number): void;
  /** How often a body of this name was started, by all workers, dead or alive. */
  executions(name: string): number;
  close(): Promise<void>;
}

/** Captured when the module loads, like all clocks here: fake timers must not set the store's clock back. */
const wall = Date.now;
const longerThanAnyLeaseMs = 24 * 60 * 60 * 1_000 + 1;
/** A dead worker waits for its store for ever, as far as a test can tell. */
const neverMs = 7 * 24 * 60 * 60 * 1_000;

interface Worker {
  readonly tp: Twiceproof;
  readonly dieAt: (point: CrashPoint) => Promise<void>;
  readonly spare: () => void;
}

/**
 * For the tests of those who use Twiceproof: workers that die at a chosen point, on a memory store whose clock the test
 * moves. Show that *your* agent does the right thing afterwards. Nothing waits for `settleDelayMs` here.
 */
export function testTwiceproof(options: Omit<TwiceproofOptions, "store" | "storeTimeoutMs"> = {}): TestTwiceproof {
  let aheadMs = 0;
  const store = memoryStore({ now: () => wall() + aheadMs });
  const started = new Map<string, number>();
  const dying = new AsyncLocalStorage<Worker>();

  function startWorker(): Worker {
    const mortal = mortalStore(store);
    const onEvent = (event: TwiceproofEvent) => {
      if (event.type === "executing") started.set(event.name, (started.get(event.name) ?? 0) + 1);
      // Returned, so that the rejection of an async one is caught where all are.
      return options.onEvent?.(event);
    };
    const tp = assemble({ ...options, store: mortal.store, storeTimeoutMs: neverMs, onEvent }, { settleDelayMs: 0 });
    return { tp, dieAt: mortal.dieAt, spare: mortal.spare };
  }

  let living = startWorker();
  const worker = (): Twiceproof => (dying.getStore() ?? living).tp;

  return {
    tp: {
      store,
      once: ((...args: Parameters<Twiceproof["once"]>) => worker().once(...args)) as Twiceproof["once"],
      recorded: (...args) => worker().recorded(...args),
      exclusive: (...args) => worker().exclusive(...args),
      withRun: (...args) => worker().withRun(...args),
      doubts: {
        list: (...args) => worker().doubts.list(...args),
        get: (...args) => worker().doubts.get(...args),
        resolve: (...args) => worker().doubts.resolve(...args),
        reopen: (...args) => worker().doubts.reopen(...args),
        history: (...args) => worker().doubts.history(...args),
      },
      close: (...args) => worker().close(...args),
    },
    async crash(point, body) {
      if (!points.includes(point)) throw new TypeError(`a crash point is one of ${points.join(", ")}`);
      const victim = living;
      const dead = victim.dieAt(point);
      const ended = dying.run(victim, async () => await body());
      await Promise.race([
        dead,
        ended
          .finally(() => victim.spare())
          .then(() => {
            throw new Error(
              `the code ended before it reached "${point}": does it return, or await, what it calls? Or was it done before?`,
            );
          }),
      ]);
      ended.catch(() => undefined);
      living = startWorker();
    },
    lapse() {
      aheadMs += longerThanAnyLeaseMs;
    },
    advance(ms) {
      aheadMs += ms;
    },
    executions(name) {
      if (typeof name !== "string" || name.includes(":"))
        throw new TypeError('give the name of an effect, not its key: of "welcome:42" that is "welcome"');
      return started.get(name) ?? 0;
    },
    close: () => living.tp.close({ graceMs: 0 }),
  };
}

/** Passes everything on until the point; from there on nothing passes, and nothing is answered. */
function mortalStore(store: Store): Omit<Worker, "tp"> & { readonly store: Store } {
  let point: CrashPoint | undefined;
  let dead = false;
  let die = (): void => undefined;
  /** Points are those of effects: the lock of a run passes. */
  const locks = new Set<string>();
  const never = new Promise<never>(() => undefined);

  function reach(here: CrashPoint): boolean {
    if (point !== here) return dead;
    dead = true;
    die();
    return true;
  }

  async function guarded<Args extends readonly unknown[], T>(
    method: (...args: Args) => Promise<T>,
    args: Args,
    before?: CrashPoint,
    after?: CrashPoint,
  ): Promise<T> {
    if (before === undefined ? dead : reach(before)) return await never;
    const answer = await method(...args);
    if (after === undefined ? dead : reach(after)) return await never;
    return answer;
  }

  function isEffect(items: readonly { readonly id: string }[]): boolean {
    return items.some(({ id }) => !locks.has(id));
  }

  return {
    store: {
      async claim(requests) {
        for (const { id, kind } of requests) if (kind === "lock") locks.add(id);
        if (!isEffect(requests)) return await guarded(store.claim, [requests]);
        const answers = await guarded(store.claim, [requests], "before-claim");
        return answers.some(({ answer }) => answer === "won") && reach("after-claim") ? await never : answers;
      },
      renew: (...args) => guarded(store.renew, args),
      settle: (settlements) =>
        isEffect(settlements)
          ? guarded(store.settle, [settlements], "before-record", "after-record")
          : guarded(store.settle, [settlements]),
      abandon: (...args) => guarded(store.abandon, args),
      resolve: (...args) => guarded(store.resolve, args),
      get: (...args) => guarded(store.get, args),
      list: (...args) => guarded(store.list, args),
      history: (...args) => guarded(store.history, args),
      prune: (...args) => guarded(store.prune, args),
      migrate: (...args) => guarded(store.migrate, args),
      health: (...args) => guarded(store.health, args),
      close: async () => undefined,
    },
    spare() {
      point = undefined;
    },
    dieAt(where) {
      point = where;
      return new Promise<void>((resolve) => {
        die = resolve;
      });
    },
  };
}
