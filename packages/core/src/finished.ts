import { nest } from "./chain.ts";
import { claim, read, settle } from "./claim.ts";
import { jittered, pause } from "./clock.ts";
import { isLost } from "./errors.ts";
import { runFingerprint } from "./fingerprint.ts";
import { claimId, digest, randomId } from "./id.ts";
import type { Kernel } from "./kernel.ts";
import { runFinished, runOvertaken, runUnrecorded } from "./problems-lock.ts";
import { reach } from "./reach.ts";
import type { ClaimRecord, ClaimRef } from "./store.ts";

/** What is remembered of a run that returned. */
export interface Finished {
  /**
   * What it returned; undefined when it has not returned yet.
   *
   * @throws TwiceproofError `RUN_FINISHED` when that was not kept
   */
  recall(): Promise<{ readonly value: unknown } | undefined>;
  /**
   * Records what it returned, under the fence of its lock, and gives it back in the form that later callers get (promise 7).
   *
   * @throws TwiceproofError `RUN_LOST`: then nobody may be told of a success
   */
  keep(fence: ClaimRef, value: unknown): Promise<unknown>;
}

/** From the claim to the record that follows at once; a successor of a holder that died in between waits for no longer. */
const leaseMs = 2_000;

/** A claim of its own, in a space of its own: an effect whose body is already through. */
export function finishedRun(
  kernel: Kernel,
  { thread, turn, runId }: { readonly thread: string; readonly turn: string; readonly runId: string },
): Finished {
  const key = `run:${digest(thread, runId)}`;
  const id = claimId(kernel.namespace, "run", key);
  const wanted = { id, key, name: "run", scope: thread, turn, runId, fingerprint: runFingerprint, leaseMs };

  async function outcomeOf(record: ClaimRecord | null): Promise<{ readonly value: unknown } | undefined> {
    if (record?.state === "failed") throw runFinished(runId);
    if (record?.state !== "completed") return undefined;
    if (record.payload === null) throw runFinished(runId);
    const value = await kernel.codec.decode(record.payload).catch((cause: unknown) => {
      throw runFinished(runId, cause);
    });
    return { value };
  }

  /** A run of this id died between claim and record. It told nobody, so that this one counts. */
  async function replace(record: ClaimRecord): Promise<void> {
    const by = { decisionId: randomId(), who: `run@${kernel.holder}`, why: "the run was made again", evidence: null };
    const verdict = { state: "released", payload: null } as const;
    await reach(() => kernel.store.resolve(record, verdict, by), { withinMs: kernel.storeTimeoutMs });
  }

  async function record(fence: ClaimRef, value: unknown): Promise<unknown> {
    const encoded = await kernel.codec.encode(value);
    for (;;) {
      const claimed = await claim(kernel, { ...wanted, kind: "effect", fence });
      switch (claimed.answer) {
        case "won": {
          const payload = encoded.kept ? encoded.payload : null;
          const settled = await settle(kernel, claimed.ref, { state: "completed", payload });
          if (settled !== "settled" && settled !== "already") throw runOvertaken(runId, { value });
          return encoded.kept ? encoded.value : value;
        }
        case "taken": {
          const outcome = await outcomeOf(claimed.record);
          if (outcome !== undefined) return outcome.value;
          if (claimed.record.state === "in-doubt") await replace(claimed.record);
          else await pause(jittered(100));
          continue;
        }
        case "behind":
        case "fenced":
          throw runOvertaken(runId, { value });
      }
    }
  }

  return {
    recall: async () => await outcomeOf(await read(kernel, id)),
    keep: (fence, value) =>
      nest(async (nesting) => {
        nesting.claimed = true;
        return await record(fence, value).catch((cause: unknown) => {
          throw isLost(cause) ? cause : runUnrecorded(runId, { value, cause });
        });
      }),
  };
}
