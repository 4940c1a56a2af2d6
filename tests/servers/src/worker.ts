// For the other side of child.ts.
import { once } from "node:events";

/** Says so, and waits until all are: the point is to meet. */
export async function ready(): Promise<void> {
  say("ready");
  await once(process.stdin, "data");
  process.stdin.destroy();
}

export function say(something: unknown): void {
  process.stdout.write(`${JSON.stringify(something)}\n`);
}

export function shuffled<T>(items: readonly T[]): readonly T[] {
  return items
    .map((item) => [Math.random(), item] as const)
    .sort(([a], [b]) => a - b)
    .map(([, item]) => item);
}
