import { canonical } from "./canonical.ts";
import { digest } from "./id.ts";

/** Changing the canonical form makes every recorded effect look like another input; so the form has a number. */
const formVersion = "1";

/** Stands in the place of a fingerprint on every lock. No effect's fingerprint can equal it. */
export const lockFingerprint = "lock";

/** The same for what is remembered of a finished run. */
export const runFingerprint = "run";

/**
 * Says whether two claims of one key mean the same tool and the same input. Throws what `canonical` throws.
 */
export function fingerprint(name: string, input: unknown): string {
  return `${formVersion}:${digest(name, canonical(input))}`;
}
