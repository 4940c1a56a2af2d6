import * as timers from "node:timers";
import { vi } from "vitest";

/**
 * Loads a module, and all that it imports, afresh with the given clocks and timers: ours are captured when the module
 * loads. What is replaced is put back before this resolves.
 */
export async function loadedWith<Module>(
  replaced: {
    readonly wall?: () => number;
    readonly monotonic?: () => number;
    readonly setTimeout?: typeof setTimeout;
    readonly clearTimeout?: typeof clearTimeout;
  },
  load: () => Promise<Module>,
): Promise<Module> {
  vi.resetModules();
  if (replaced.wall) vi.spyOn(Date, "now").mockImplementation(replaced.wall);
  if (replaced.monotonic) vi.spyOn(performance, "now").mockImplementation(replaced.monotonic);
  const { setTimeout = timers.setTimeout, clearTimeout = timers.clearTimeout } = replaced;
  vi.doMock("node:timers", () => ({ ...timers, setTimeout, clearTimeout }));
  try {
    return await load();
  } finally {
    vi.restoreAllMocks();
    vi.doUnmock("node:timers");
  }
}

/** Blocks the event loop without burning a processor. */
export function block(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}
