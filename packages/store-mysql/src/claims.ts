import type { ClaimRecord, ClaimRequest, ClaimResult } from "@twiceproof/core/store";
import { holdsFence, judgeClaim } from "@twiceproof/core/store";
import type { Connection } from "./client.ts";
import { isDuplicateKey, isPassing, unavailable } from "./errors.ts";
import type { Tables } from "./prefix.ts";
import { toRecord } from "./rows.ts";
import * as sql from "./sql.ts";
import * as lists from "./sql-list.ts";

const maxRounds = 10;
const firstToken: ClaimResult = { answer: "won", token: 1 };

/** In the order of `ids`. */
export async function find(
  db: Connection,
  tables: Tables,
  ids: readonly string[],
): Promise<readonly (ClaimRecord | null)[]> {
  if (ids.length === 0) return [];
  const records = (await db.rows(sql.get(tables, ids))).map(toRecord);
  const byId = new Map(records.map((record) => [record.id, record]));
  return ids.map((id) => byId.get(id) ?? null);
}

export interface Claims {
  one(request: ClaimRequest): Promise<ClaimResult>;
  many(requests: readonly ClaimRequest[]): Promise<readonly ClaimResult[]>;
}

export function claimsOf(db: Connection, tables: Tables): Claims {
  /**
   * No statement of MySQL both inserts and tells what is there. A new key is one trip when the insert comes first, a
   * recorded effect when the look-up does: who replays meets one record after the other, so the last claim tells.
   */
  let lookFirst = false;

  async function one(request: ClaimRequest): Promise<ClaimResult> {
    const { id, fence } = request;
    const ids = fence === null ? [id] : [id, fence.id];
    // A request that names a version has read a row.
    let looks = lookFirst || request.seen !== null;
    for (let round = 0; round < maxRounds; round++) {
      if (looks) {
        const [record = null, lock = null] = await find(db, tables, round === 0 ? [id] : ids);
        lookFirst = record !== null;
        const answer = answerFrom(record, request);
        if (answer !== null) return answer;
        // After a first attempt the lock was read too: what it says is why nothing was written.
        if (round > 0 && !holdsFence(lock, fence)) return { answer: "fenced", record: lock };
        if (record !== null) {
          await db.write(sql.claimAgain(tables, request, record));
          continue;
        }
      }
      looks = true;
      if (await inserted(request)) return firstToken;
    }
    throw unavailable("The key changed hands again and again while it was claimed.");
  }

  async function inserted(request: ClaimRequest): Promise<boolean> {
    try {
      return (await db.write(sql.insert(tables, request))) === 1;
    } catch (error) {
      if (isDuplicateKey(error)) return false;
      throw error;
    }
  }

  async function many(requests: readonly ClaimRequest[]): Promise<readonly ClaimResult[]> {
    const answers = new Map<string, ClaimResult>();
    const unanswered = (): readonly ClaimRequest[] => requests.filter(({ id }) => !answers.has(id));
    if (!lookFirst && requests.every(({ seen }) => seen === null)) await insertAll(requests, answers);
    const left = unanswered();
    const records = await find(
      db,
      tables,
      left.map(({ id }) => id),
    );
    if (left.length > 0) lookFirst = records.some((record) => record !== null);
    for (const [index, request] of left.entries()) {
      const answer = answerFrom(records[index] ?? null, request);
      if (answer !== null) answers.set(request.id, answer);
    }
    await insertAll(
      left.filter((_, index) => records[index] === null),
      answers,
    );
    // The rest one by one: free rows, and what another claimed or whose fence was lost in between.
    await Promise.all(unanswered().map(async (request) => void answers.set(request.id, await one(request))));
    return requests.map(({ id }) => answers.get(id) as ClaimResult);
  }

  async function insertAll(requests: readonly ClaimRequest[], answers: Map<string, ClaimResult>): Promise<void> {
    const [unfenced, fenced] = [requests.filter(({ fence }) => !fence), requests.filter(({ fence }) => fence)];
    if (await wonAll(unfenced, lists.insertAll)) for (const { id } of unfenced) answers.set(id, firstToken);
    if (await wonAll(fenced, lists.insertFenced)) for (const { id } of fenced) answers.set(id, firstToken);
  }

  /** False when it is not known of each: the attempt ids tell. */
  async function wonAll(requests: readonly ClaimRequest[], insert: typeof lists.insertAll): Promise<boolean> {
    if (requests.length === 0) return true;
    try {
      return (await db.write(insert(tables, requests))) === requests.length;
    } catch (error) {
      if (isDuplicateKey(error) || isPassing(error)) return false;
      throw error;
    }
  }

  return { one, many };
}

/** What a claim meets, as far as its own row tells; null when it has to be tried. */
function answerFrom(record: ClaimRecord | null, request: ClaimRequest): ClaimResult | null {
  const judged = judgeClaim(record, request);
  if (record === null || judged === "grant") return null;
  return judged === "won" ? { answer: "won", token: record.token } : { answer: judged, record };
}
