import type { Answer, Classify } from "./classify.ts";
import type { Codec } from "./codec.ts";
import type { EffectContext, ReconcileContext } from "./effect.ts";
import type { TwiceproofEvent } from "./events.ts";
import type { Identity } from "./identity.ts";
import type { ClaimRef } from "./store.ts";

/** One call of an effect, checked and identified: what `perform` needs, and nothing that it has to look up. */
export interface Call<Result> extends Identity {
  readonly name: string;
  readonly scope: string | null;
  readonly turn: string | null;
  readonly runId: string | null;
  readonly fence: ClaimRef | null;
  readonly kind: "effect" | "idempotent";
  readonly classify: Classify | undefined;
  readonly reconcile: ((context: ReconcileContext) => Answer | Promise<Answer>) | undefined;
  readonly settleDelayMs: number;
  readonly leaseMs: number;
  readonly waitMs: number;
  readonly keepResult: boolean;
  readonly codec: Codec;
  readonly signal: AbortSignal | undefined;
  readonly runSignal: AbortSignal | undefined;
  readonly body: (context: EffectContext) => Result | Promise<Result>;
}

export function event(
  call: Pick<Call<unknown>, "id" | "name" | "scope" | "turn" | "runId">,
  type: TwiceproofEvent["type"],
  token: number,
): TwiceproofEvent {
  const { id, name, scope, turn, runId } = call;
  return { type, name, id, token, scope, turn, runId };
}
