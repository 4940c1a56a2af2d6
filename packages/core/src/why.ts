import type { Codec } from "./codec.ts";
import type { Payload } from "./store.ts";

/** Why something was refused, or not executed: the text of `refused(why)` or `notExecuted(why)`, as it is recorded. */
export function encodeWhy(why: string): Payload {
  return { format: "json", text: JSON.stringify({ why }) };
}

export async function decodeWhy(codec: Codec, payload: Payload | null): Promise<string> {
  const value = payload === null ? undefined : await codec.decode(payload).catch(() => undefined);
  const why = typeof value === "object" && value !== null && "why" in value ? value.why : undefined;
  return typeof why === "string" ? why : "refused";
}
