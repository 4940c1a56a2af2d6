import { describe } from "vitest";
import { approvals } from "./suite/approvals.ts";
import { deadStreams } from "./suite/dead-streams.ts";
import { doubts } from "./suite/doubts.ts";
import { features } from "./suite/features.ts";
import { identity } from "./suite/identity.ts";
import { lines } from "./suite/lines.ts";
import { mending } from "./suite/mending.ts";
import { nested } from "./suite/nested.ts";
import { reads } from "./suite/reads.ts";
import { replay } from "./suite/replay.ts";
import { runs } from "./suite/runs.ts";
import { slips } from "./suite/slips.ts";
import { waiting } from "./suite/waiting.ts";
import { wrapping } from "./suite/wrapping.ts";
import { type SdkModules, sdkOf } from "./support/sdk.ts";
import type { StoreName } from "./support/world.ts";

/** What every version is held to, on each store. */
export function suite(alias: string, modules: SdkModules): void {
  const sdk = sdkOf(alias, modules);
  for (const store of ["memory", "SQLite"] satisfies StoreName[])
    describe(`${sdk.title}, ${store} store`, () => {
      for (const part of [
        approvals,
        deadStreams,
        doubts,
        features,
        identity,
        lines,
        mending,
        nested,
        reads,
        replay,
        runs,
        slips,
        waiting,
        wrapping,
      ])
        part(sdk, store);
    });
}
