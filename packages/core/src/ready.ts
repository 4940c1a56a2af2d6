import type { Hold } from "./heartbeat.ts";
import { reach } from "./reach.ts";

/**
 * Promise 11: in the tick that starts the body, the lease is alive by this worker's clocks, with a tenth of it to spare,
 * or was renewed just now. False: lost, nothing may start.
 *
 * @throws TwiceproofError `STORE_UNAVAILABLE`
 */
export async function ready(hold: Hold, leaseMs: number, storeTimeoutMs: number): Promise<boolean> {
  while (hold.leftMs() < leaseMs / 10) {
    if (!(await reach(() => hold.renew(), { withinMs: storeTimeoutMs }))) return false;
  }
  return !hold.lost();
}
