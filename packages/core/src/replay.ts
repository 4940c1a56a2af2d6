import type { Call } from "./call.ts";
import type { Kernel } from "./kernel.ts";
import { resultUnavailable } from "./problems.ts";
import type { ClaimRecord, Payload } from "./store.ts";

/** @throws TwiceproofError `EFFECT_RESULT_UNAVAILABLE`: it is done, and there is nothing to give back. */
export async function replay<Result>(kernel: Kernel, call: Call<Result>, record: ClaimRecord): Promise<Result> {
  if (record.payload === null) throw resultUnavailable(call);
  return (await kernel.codec.decode(record.payload)) as Result;
}

/** Why a recorded refusal was one: the text of `refused(why)`, or of the verdict. */
export async function recordedWhy(kernel: Kernel, payload: Payload | null): Promise<string> {
  const value = payload === null ? undefined : await kernel.codec.decode(payload).catch(() => undefined);
  const why = typeof value === "object" && value !== null && "why" in value ? value.why : undefined;
  return typeof why === "string" ? why : "refused";
}
