import { IterableReadableStream } from "@langchain/core/utils/stream";
import type { RunConfig } from "./run-config.ts";

/**
 * A run as a stream. It does not wait for its reader, and is called off when the reader goes away, as LangGraph's own
 * streams: what a generator stands in between would first wait for the next chunk.
 */
export function runStream(
  config: RunConfig | undefined,
  run: (config: RunConfig) => AsyncIterable<unknown>,
): IterableReadableStream<unknown> {
  const gone = new AbortController();
  const signal = config?.signal === undefined ? gone.signal : AbortSignal.any([config.signal, gone.signal]);

  async function pump(controller: ReadableStreamDefaultController<unknown>): Promise<void> {
    try {
      for await (const chunk of run({ ...config, signal })) {
        if (gone.signal.aborted) return;
        controller.enqueue(chunk);
      }
      if (!gone.signal.aborted) controller.close();
    } catch (error) {
      // Nobody listens any more.
      if (!gone.signal.aborted) controller.error(error);
    }
  }

  return new IterableReadableStream({
    start: (controller) => void pump(controller),
    cancel: (reason) => gone.abort(reason),
  });
}
