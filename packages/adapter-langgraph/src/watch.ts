import { AsyncLocalStorage } from "node:async_hooks";

/** The doubt that left a tool under a middleware of ours, which others may have swallowed on its way. */
interface Watch {
  doubt?: unknown;
}

const current = new AsyncLocalStorage<Watch>();

export function noteDoubt(doubt: unknown): void {
  const watch = current.getStore();
  if (watch !== undefined) watch.doubt = doubt;
}

/** Runs a tool call, and leaves by its doubt even if what is between answered for it. */
export async function watched<Answer>(run: () => Answer | Promise<Answer>): Promise<Answer> {
  const watch: Watch = {};
  try {
    const answer = await current.run(watch, async () => await run());
    if (watch.doubt === undefined) return answer;
  } catch (error) {
    if (watch.doubt === undefined) throw error;
  }
  throw watch.doubt;
}
