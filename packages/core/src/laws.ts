import { batchLaws } from "./laws/batch.ts";
import { claimLaws } from "./laws/claim.ts";
import { clockLaws } from "./laws/clock.ts";
import { disputeLaws } from "./laws/dispute.ts";
import { doubtLaws } from "./laws/doubt.ts";
import { fenceLaws } from "./laws/fence.ts";
import { finalLaws } from "./laws/final.ts";
import type { StoreLaw } from "./laws/harness.ts";
import { historyLaws } from "./laws/history.ts";
import { holderLaws } from "./laws/holder.ts";
import { keepLaws } from "./laws/keep.ts";
import { keyLaws } from "./laws/key.ts";
import { lateLaws } from "./laws/late.ts";
import { lineLaws } from "./laws/line.ts";
import { listLaws } from "./laws/list.ts";
import { payloadLaws } from "./laws/payload.ts";
import { placeLaws } from "./laws/place.ts";
import { renewalLaws } from "./laws/renewal.ts";
import { repeatedClaimLaws } from "./laws/repeat-claim.ts";
import { repeatedWordLaws } from "./laws/repeat-word.ts";
import { stopLaws } from "./laws/stop.ts";
import { stopVerdictLaws } from "./laws/stop-verdict.ts";
import { turnLaws } from "./laws/turn.ts";
import { turnAnswerLaws } from "./laws/turn-answer.ts";
import { verdictLaws } from "./laws/verdict.ts";

export type { StoreHarness, StoreLaw } from "./laws/harness.ts";

/** Every rule that a store keeps, by the number of its promise. There is no opting out: a store keeps all of them. */
export const storeLaws: readonly StoreLaw[] = [
  ...claimLaws,
  ...doubtLaws,
  ...holderLaws,
  ...lateLaws,
  ...disputeLaws,
  ...keyLaws,
  ...payloadLaws,
  ...finalLaws,
  ...renewalLaws,
  ...keepLaws,
  ...clockLaws,
  ...repeatedClaimLaws,
  ...repeatedWordLaws,
  ...fenceLaws,
  ...historyLaws,
  ...batchLaws,
  ...verdictLaws,
  ...lineLaws,
  ...placeLaws,
  ...turnLaws,
  ...turnAnswerLaws,
  ...stopLaws,
  ...stopVerdictLaws,
  ...listLaws,
].sort((a, b) => a.number - b.number);
