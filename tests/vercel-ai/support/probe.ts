// A route of the copied application: what the server process holds.
// @ts-expect-error It is there in the copy.
import { version } from "../../lib/app.ts";

export const dynamic = "force-dynamic";

export function GET(): Response {
  const { livingTimers } = globalThis as { livingTimers?: () => number };
  return Response.json({
    version: version as number,
    pid: process.pid,
    timers: livingTimers?.(),
    resources: process.getActiveResourcesInfo(),
  });
}
