import type { Store } from "../../src/store.ts";

type StoreMethod = Exclude<keyof Store, "watch" | "fenceStatement" | "oneWriter">;

/** Stands round one method. `pass` asks the store itself; leaving it out loses the question, dropping what it gives loses the answer. */
type Around<Method extends StoreMethod> = (
  pass: () => ReturnType<Store[Method]>,
  ...args: Parameters<Store[Method]>
) => ReturnType<Store[Method]>;

export interface FaultyStore {
  readonly store: Store;
  /** In force until the returned function is called; the newest one stands outermost. */
  around<Method extends StoreMethod>(method: Method, around: Around<Method>): () => void;
  /** Every question of this method that reached the wrapper, oldest first. */
  asked<Method extends StoreMethod>(method: Method): readonly Parameters<Store[Method]>[];
}

type AnyMethod = (...args: readonly never[]) => Promise<unknown>;
type AnyAround = (pass: () => Promise<unknown>, ...args: readonly never[]) => Promise<unknown>;

/** The real store with faults put round its methods: what goes through is answered by the real one. */
export function faultyStore(real: Store): FaultyStore {
  const arounds = new Map<string, Set<AnyAround>>();
  const asked = new Map<string, (readonly never[])[]>();

  function wrapped(name: string, method: AnyMethod): AnyMethod {
    return async (...args) => {
      asked.set(name, [...(asked.get(name) ?? []), args]);
      let pass = (): Promise<unknown> => method(...args);
      for (const around of arounds.get(name) ?? []) {
        const inner = pass;
        pass = () => around(inner, ...args);
      }
      return await pass();
    };
  }

  const methods = Object.entries(real).map(([name, method]) => [name, wrapped(name, method as AnyMethod)]);
  return {
    store: Object.fromEntries(methods) as Store,
    around(method, around) {
      const all = arounds.get(method) ?? new Set();
      arounds.set(method, all);
      const any = around as unknown as AnyAround;
      all.add(any);
      return () => all.delete(any);
    },
    asked: (method) => (asked.get(method) ?? []) as unknown as readonly Parameters<Store[typeof method]>[],
  };
}

/** Never answers, as a connection does whose other end is gone. */
export function never<T>(): Promise<T> {
  return new Promise(() => undefined);
}

export function brokenConnection(): Error {
  return Object.assign(new Error("connection terminated unexpectedly"), { code: "ECONNRESET" });
}
