import { IterableReadableStream } from "@langchain/core/utils/stream";
import type { RunConfig } from "./run-config.ts";

/** What a run says to the stream that shows it. */
export interface Outlet {
  /** It has its thread, and begins. */
  readonly admit: () => void;
  /** False: nobody reads any more. */
  readonly push: (chunk: unknown) => boolean;
}

export interface RunStream {
  readonly stream: IterableReadableStream<unknown>;
  /** Rejects when the run was refused before it began. */
  readonly admitted: Promise<void>;
}

/**
 * A run as a stream. It does not wait for its reader, and is called off when the reader goes away, as LangGraph's own
 * streams: what a generator stands in between would first wait for the next chunk.
 */
export function runStream(
  config: RunConfig | undefined,
  run: (config: RunConfig, outlet: Outlet) => Promise<unknown>,
): RunStream {
  const gone = new AbortController();
  const signal = config?.signal === undefined ? gone.signal : AbortSignal.any([config.signal, gone.signal]);
  const { promise: admitted, resolve: admit, reject: refuse } = Promise.withResolvers<void>();
  // Told to those who read the stream as well.
  admitted.catch(() => undefined);

  async function pump(controller: ReadableStreamDefaultController<unknown>): Promise<void> {
    const push = (chunk: unknown): boolean => {
      if (!gone.signal.aborted) controller.enqueue(chunk);
      return !gone.signal.aborted;
    };
    try {
      await run({ ...config, signal }, { admit, push });
      if (!gone.signal.aborted) controller.close();
    } catch (error) {
      refuse(error);
      // Nobody listens any more.
      if (!gone.signal.aborted) controller.error(error);
    }
  }

  let over: Promise<void> | undefined;
  const stream = new IterableReadableStream<unknown>({
    start(controller) {
      over = pump(controller);
    },
    async cancel(reason) {
      gone.abort(reason);
      // Who breaks out of a loop over it finds the thread free afterwards.
      await over;
    },
  });
  return { stream, admitted };
}
