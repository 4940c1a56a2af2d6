/** A line for whoever waits. Written past vitest's console, which would hold it back until a test ends. */
export function say(text: string): void {
  process.stderr.write(`[servers] ${text}\n`);
}
