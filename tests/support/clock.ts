import type { ClockOffsets } from "./protocol.ts";

/**
 * Loaded with `--import`, before anything of ours takes hold of the clocks: a worker whose wall clock is wrong or jumps,
 * or whose machine slept. SQLite asks the operating system and is not affected.
 */
const key = Symbol.for("twiceproof.tests.clock");
const globals = globalThis as { [key]?: Required<ClockOffsets> };

export function setClock(offsets: ClockOffsets): void {
  globals[key] = { wallMs: 0, monotonicMs: 0, ...globals[key], ...offsets };
}

if (globals[key] === undefined) {
  const wall = Date.now.bind(Date);
  const monotonic = performance.now.bind(performance);
  setClock(JSON.parse(process.env.TWICEPROOF_TEST_CLOCK ?? "{}") as ClockOffsets);
  Date.now = () => wall() + (globals[key]?.wallMs ?? 0);
  performance.now = () => monotonic() + (globals[key]?.monotonicMs ?? 0);
}
