/** What is used of a graph's events of version 3. */
export interface GraphEvents extends AsyncIterable<unknown> {
  readonly output: Promise<unknown>;
}

/**
 * The events, whose `output`, `values` and iteration end as the run does: LangGraph's own may end well for a run that lost
 * its thread, whose tools leave by an interrupt that is empty.
 */
export function endingWith(events: GraphEvents, over: Promise<unknown>): GraphEvents {
  // Told to those who ask, and to nobody else.
  over.catch(() => undefined);

  async function* toTheEnd(iterable: AsyncIterable<unknown>): AsyncGenerator<unknown> {
    try {
      yield* iterable;
    } catch (error) {
      // The run's own reason, when it has another one.
      await over;
      throw error;
    }
    await over;
  }

  return new Proxy(events, {
    get(_, name) {
      if (name === "output") return over;
      if (name === Symbol.asyncIterator) return () => toTheEnd(events);
      // It has private fields, which a proxy has not.
      const value: unknown = Reflect.get(events, name, events);
      if (name === "values")
        return {
          [Symbol.asyncIterator]: () => toTheEnd(value as AsyncIterable<unknown>),
          // biome-ignore lint/suspicious/noThenProperty: LangGraph's values are awaited as well.
          then: over.then.bind(over),
        };
      return typeof value === "function" && name !== "constructor" ? value.bind(events) : value;
    },
  });
}
