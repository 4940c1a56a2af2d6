// Loaded before a server's own code: counts the timers that live, those that keep no process alive among them.
import { createHook } from "node:async_hooks";

const living = new Set<number>();
createHook({
  init(id, type) {
    if (type === "Timeout") living.add(id);
  },
  destroy(id) {
    living.delete(id);
  },
}).enable();
(globalThis as { livingTimers?: () => number }).livingTimers = () => living.size;
