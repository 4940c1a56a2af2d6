import type { Call } from "./call.ts";
import { resultUnavailable } from "./problems.ts";
import type { ClaimRecord } from "./store.ts";

/** @throws TwiceproofError `EFFECT_RESULT_UNAVAILABLE`: it is done, and there is nothing to give back. */
export async function replay<Result>(
  call: Pick<Call<Result>, "id" | "name" | "codec">,
  record: ClaimRecord,
): Promise<Result> {
  if (record.payload === null) throw resultUnavailable(call);
  return (await call.codec.decode(record.payload)) as Result;
}
