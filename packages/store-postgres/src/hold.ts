import type {
  ClaimRecord,
  ClaimRef,
  Decision,
  DoubtRef,
  Judged,
  Payload,
  Renewal,
  Renewed,
  Resolved,
  Settled,
  Settlement,
  StoredVerdict,
} from "@twiceproof/core/store";
import { decisionEntry, judgeSettlement, judgeVerdict } from "@twiceproof/core/store";
import type { Parameter } from "./client.ts";
import { pause, untilAnswered } from "./retry.ts";
import { toArray, toBytesArray, toDecided, toRecord, toWords } from "./rows.ts";
import type { Session } from "./session.ts";

/** A transaction that failed holds its locks for a moment after its error was told: one more look, for those alone. */
const busyPauseMs = 5;

export async function renewMany(session: Session, renewals: readonly Renewal[]): Promise<readonly Renewed[]> {
  const answers = await renewOnce(session, renewals);
  const busy = renewals.filter((_, index) => answers[index] === "busy");
  if (busy.length === 0) return answers;
  await pause(busyPauseMs);
  const later = [...(await renewOnce(session, busy))];
  return answers.map((answer) => (answer === "busy" ? (later.shift() ?? answer) : answer));
}

async function renewOnce({ run, sql }: Session, renewals: readonly Renewal[]): Promise<readonly Renewed[]> {
  if (renewals.length === 0) return [];
  const columns = [...columnsOf(renewals), toArray(renewals.map(({ leaseMs }) => leaseMs))];
  const rows = await run(sql.renew, columns);
  const answers = new Map(rows.map((row) => [Number(row.ord), row.answer as Renewed]));
  return renewals.map((_, index) => answers.get(index + 1) ?? "lost");
}

/** As one statement; a lock, what does not simply meet its own claim, or was in somebody's way, is settled alone. */
export async function settleMany(session: Session, settlements: readonly Settlement[]): Promise<readonly Settled[]> {
  const listed = settlements.filter((each) => !isLocks(each));
  const settled = listed.length > 0 ? await settleListed(session, listed) : new Set();
  return Promise.all(settlements.map((each) => (settled.has(each) ? "settled" : settleOne(session, each))));
}

/** Those that it settled. */
async function settleListed(
  { run, sql }: Session,
  settlements: readonly Settlement[],
): Promise<ReadonlySet<Settlement | undefined>> {
  const columns = [
    ...columnsOf(settlements),
    toArray(settlements.map(({ state }) => state)),
    toArray(settlements.map(({ payload }) => payload?.format ?? null)),
    toArray(settlements.map(({ payload }) => payload?.text ?? null)),
  ];
  const [row] = await run(sql.settleMany, columns);
  return new Set(toWords(row?.settled).map((ord) => settlements[Number(ord) - 1]));
}

/** As good as always: who releases an effect says why. */
function isLocks({ state, payload }: Settlement): boolean {
  return state === "released" && payload === null;
}

function columnsOf(refs: readonly ClaimRef[]): readonly Parameter[] {
  return [
    toBytesArray(refs.map(({ id }) => id)),
    toBytesArray(refs.map(({ attemptId }) => attemptId)),
    toArray(refs.map(({ token }) => token)),
  ];
}

/** One that meets its own claim is one statement; anything else is judged, and written if the record stands as it was read. */
export function settleOne(session: Session, settlement: Settlement): Promise<Settled> {
  const { run, sql } = session;
  const { id, token, attemptId, state, payload } = settlement;
  const parameters = [id, attemptId, token, state, payload?.format ?? null, payload?.text ?? null];
  const word = { token, attemptId, who: null, why: null, evidence: null, decisionId: null, payload };
  return untilAnswered(async () => {
    if ((await run(isLocks(settlement) ? sql.settleLock : sql.settle, parameters)).length > 0) return "settled";
    const [row] = await run(sql.lookLate, [id, attemptId, state]);
    if (row === undefined) return "lost";
    const record = toRecord(row.record);
    return apply(session, record, judgeSettlement(record, settlement, row.recorded === true), word);
  });
}

export async function resolve(
  session: Session,
  doubt: DoubtRef,
  verdict: StoredVerdict,
  by: Decision,
): Promise<Resolved> {
  return untilAnswered(async () => {
    const [row] = await session.run(session.sql.lookDecided, [doubt.id, by.decisionId]);
    if (row === undefined) return "refused";
    const record = toRecord(row.record);
    const judged = judgeVerdict(record, doubt, verdict, toDecided(row.decided));
    return apply(session, record, judged, { ...decisionEntry(verdict, by), token: doubt.token, attemptId: null });
  });
}

interface Word {
  readonly token: number;
  readonly attemptId: string | null;
  readonly who: string | null;
  readonly why: string | null;
  readonly evidence: string | null;
  readonly decisionId: string | null;
  readonly payload: Payload | null;
}

/**
 * What was judged, and its history, in one statement that changes nothing unless the record still has the version that
 * was judged. Undefined: it has another, look again.
 */
async function apply<Answer>(
  { run, sql }: Session,
  record: ClaimRecord,
  { answer, change, history }: Judged<Answer>,
  word: Word,
): Promise<Answer | undefined> {
  if (change === undefined && history === undefined) return answer;
  const { token, attemptId, who, why, evidence, decisionId, payload } = word;
  const what = history ?? null;
  const said = [payload?.format ?? null, payload?.text ?? null];
  const rows =
    change === undefined
      ? await run(sql.note, [record.id, record.version, token, attemptId, what, ...said])
      : await run(sql.amend, [
          record.id,
          record.version,
          ...amended(record, change),
          ...[token, attemptId, what, who, why, evidence, decisionId, ...said],
          change.to === "unlocked" ? change.attemptId : null,
        ]);
  return rows.length > 0 ? answer : undefined;
}

/** State, format, text, abandoned, disputed, by verdict, cancel requested. */
function amended(record: ClaimRecord, change: NonNullable<Judged<unknown>["change"]>): readonly Parameter[] {
  const { abandoned, byVerdict, disputed, cancelRequested } = record;
  switch (change.to) {
    case "settled": {
      const { state, payload } = change;
      return [
        state,
        payload?.format ?? null,
        payload?.text ?? null,
        abandoned,
        false,
        change.byVerdict,
        cancelRequested,
      ];
    }
    case "disputed":
      return ["claimed", null, null, true, true, false, cancelRequested];
    case "unlocked":
      return ["released", null, null, false, disputed, true, false];
    case "cancel-requested":
      return isOpen(record)
        ? ["claimed", null, null, abandoned, disputed, byVerdict, true]
        : [
            record.state,
            record.payload?.format ?? null,
            record.payload?.text ?? null,
            abandoned,
            disputed,
            byVerdict,
            true,
          ];
  }
}

function isOpen({ state }: ClaimRecord): boolean {
  return state === "claimed" || state === "in-doubt" || state === "lapsed";
}
