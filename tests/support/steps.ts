import type { Store } from "@twiceproof/core";
import type { FromWorker, Notice, Step } from "./protocol.ts";

export interface Steps {
  /** Resolves at once, or when the parent passes the worker on. */
  reach(step: Step): Promise<void>;
  /** `forGood`: it stops there no more. */
  pass(step: Step, forGood: boolean): void;
  notice(notice: Notice): void;
  readonly trace: string[];
}

export function createSteps(stopAt: readonly Step[]): Steps {
  const stops = new Set(stopAt);
  const waiting = new Map<Step, () => void>();
  const trace: string[] = [];
  return {
    trace,
    async reach(step) {
      trace.push(step);
      if (!stops.has(step)) return;
      await new Promise<void>((resolve) => {
        waiting.set(step, resolve);
        say({ type: "at", step });
      });
    },
    pass(step, forGood) {
      if (forGood) stops.delete(step);
      waiting.get(step)?.();
      waiting.delete(step);
    },
    notice: (step) => say({ type: "at", step }),
  };
}

export function say(message: FromWorker): void {
  process.send?.(message);
}

/** Stops where an effect's statement leaves for the store, and where its answer comes back. Locks, and what is remembered of runs, pass. */
export function stepping(store: Store, steps: Steps): Store {
  const others = new Set<string>();

  async function around<T>(isEffect: boolean, before: Step, after: Step, ask: () => Promise<T>): Promise<T> {
    if (!isEffect) return await ask();
    await steps.reach(before);
    const answer = await ask();
    await steps.reach(after);
    return answer;
  }

  return {
    ...store,
    claim(requests) {
      for (const { id, kind, fingerprint } of requests) if (kind === "lock" || fingerprint === "run") others.add(id);
      const isEffect = requests.some(({ id }) => !others.has(id));
      return around(isEffect, "before claim", "after claim", () => store.claim(requests));
    },
    settle(settlements) {
      const isEffect = settlements.some(({ id }) => !others.has(id));
      return around(isEffect, "before record", "after record", () => store.settle(settlements));
    },
    renew(renewals) {
      steps.trace.push("renew");
      return store.renew(renewals);
    },
  };
}
