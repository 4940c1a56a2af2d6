import {
  type ClaimRecord,
  type ClaimRequest,
  type ClaimResult,
  decisionEntry,
  deriveState,
  type HistoryEntry,
  holdsFence,
  type Judged,
  judgeClaim,
  judgeRenewal,
  judgeSettlement,
  judgeTicket,
  judgeVerdict,
  type Queued,
  type Store,
  type StoredState,
  type Ticket,
  type TicketRequest,
  ticketsAhead,
} from "@twiceproof/core/store";

/** What is stored: a record without what follows from the clock. */
export type Row = Omit<ClaimRecord, "state" | "readAt"> & { readonly stored: StoredState };

/** Your database. `transaction` runs `work` again after a deadlock or a serialization failure. */
export interface Database {
  transaction<T>(work: (tx: Transaction) => Promise<T>): Promise<T>;
}
export interface Transaction {
  now(): Promise<number>; // the database's clock
  lock(id: string): Promise<Row | null>; // select … for update; an id without a row must be locked as well
  write(row: Row): Promise<void>; // insert or update
  history(id: string): Promise<readonly HistoryEntry[]>;
  note(id: string, entry: Omit<HistoryEntry, "at">): Promise<void>; // dated by the database
  line(id: string): Promise<readonly Ticket[]>; // whose lease is not over, first come first
  enter(id: string, ticket: Omit<Ticket, "readAt">): Promise<void>; // at the end, also if it lies there and is dead
  extend(id: string, ticketId: string, leaseUntil: number): Promise<void>;
  leave(id: string, ticketId: string): Promise<void>;
}

const unsaid = { who: null, why: null, evidence: null, decisionId: null, payload: null };
const flags = { abandoned: false, disputed: false, byVerdict: false, cancelRequested: false };
const fresh = { ...flags, settledAt: null, payload: null };

type Atomic = "claim" | "renew" | "settle" | "abandon" | "resolve" | "queue" | "leave" | "line";

export function slowStore(db: Database): Pick<Store, Atomic> {
  /** One transaction per item: neighbours do not matter (promise 16). */
  async function each<Item, T>(
    items: readonly Item[],
    work: (tx: Transaction, item: Item) => Promise<T>,
  ): Promise<T[]> {
    const answers: T[] = [];
    for (const item of items) answers.push(await db.transaction((tx) => work(tx, item)));
    return answers;
  }

  async function read(tx: Transaction, id: string): Promise<{ row: Row; record: ClaimRecord } | null> {
    const row = await tx.lock(id);
    if (row === null) return null;
    const { stored, ...facts } = row;
    const readAt = await tx.now();
    return { row, record: { ...facts, state: deriveState(row, readAt), readAt } };
  }

  async function update(tx: Transaction, row: Row, change: Partial<Row>): Promise<void> {
    await tx.write({ ...row, ...change, version: row.version + 1 });
  }

  async function apply(tx: Transaction, row: Row | undefined, change: Judged<unknown>["change"]): Promise<void> {
    if (row === undefined || change === undefined) return;
    const settledAt = await tx.now();
    const { cancelRequested } = row;
    switch (change.to) {
      case "settled": {
        const { state: stored, payload, byVerdict } = change;
        return await update(tx, row, { stored, payload, byVerdict, disputed: false, settledAt });
      }
      case "disputed":
        return await update(tx, row, { ...fresh, cancelRequested, stored: "claimed", abandoned: true, disputed: true });
      case "cancel-requested":
        return await update(tx, row, { cancelRequested: true });
      case "unlocked": {
        const [attemptId, token] = [change.attemptId, row.token + 1];
        return await update(tx, row, { ...fresh, stored: "released", attemptId, token, byVerdict: true, settledAt });
      }
    }
  }

  async function claim(tx: Transaction, request: ClaimRequest): Promise<ClaimResult> {
    const { seen, fence, ticketId, ...facts } = request;
    const lock = fence && (await read(tx, fence.id)); // always before the effect's row, so that two claims cannot deadlock
    const found = await read(tx, request.id);
    const record = found?.record ?? null;
    const judged = judgeClaim(record, request);
    if (found && judged === "won") return { answer: "won", token: found.record.token };
    if (found && judged === "taken") return { answer: "taken", record: found.record };
    const line = request.kind === "lock" ? await tx.line(request.id) : [];
    if (ticketsAhead(line, ticketId) > 0) return { answer: "behind", record };
    if (found && judged === "free") return { answer: "free", record: found.record };
    if (!holdsFence(lock?.record ?? null, fence)) return { answer: "fenced", record: lock?.record ?? null };
    const at = await tx.now();
    const [token, version] = [(found?.row.token ?? 0) + 1, (found?.row.version ?? 0) + 1];
    const times = { leaseUntil: at + facts.leaseMs, createdAt: found?.row.createdAt ?? at, claimedAt: at };
    await tx.write({ ...facts, ...fresh, ...times, stored: "claimed", token, version });
    if (ticketId !== undefined) await tx.leave(request.id, ticketId);
    return { answer: "won", token };
  }

  async function queue(tx: Transaction, request: TicketRequest): Promise<Queued> {
    const { id, maxQueue, leaseMs, ...facts } = request;
    const found = await read(tx, id); // locked first: who enters and who claims come one after the other
    const line = await tx.line(id);
    const [judged, at] = [judgeTicket(line, request), await tx.now()];
    if (judged === "full") return { answer: "full", depth: line.length };
    if (judged === "enter") await tx.enter(id, { ...facts, queuedAt: at, leaseUntil: at + leaseMs });
    if (judged === "renew") await tx.extend(id, facts.ticketId, at + leaseMs);
    return { answer: "queued", ahead: ticketsAhead(line, facts.ticketId), record: found?.record ?? null };
  }

  return {
    claim: (requests) => each(requests, claim),
    renew: (renewals) =>
      each(renewals, async (tx, { leaseMs, ...ref }) => {
        const found = await read(tx, ref.id);
        const answer = judgeRenewal(found?.record ?? null, ref);
        if (!found || answer === "lost") return "lost";
        const leaseUntil = (await tx.now()) + leaseMs;
        await update(tx, found.row, leaseUntil > found.row.leaseUntil ? { leaseUntil, leaseMs } : {});
        return answer;
      }),
    settle: (settlements) =>
      each(settlements, async (tx, settlement) => {
        const { id, attemptId, token, state, payload } = settlement;
        const [found, history] = [await read(tx, id), await tx.history(id)];
        const said = history.some((entry) => entry.attemptId === attemptId && entry.what === `late-${state}`);
        const { answer, change, history: what } = judgeSettlement(found?.record ?? null, settlement, said);
        await apply(tx, found?.row, change);
        if (what) await tx.note(id, { ...unsaid, what, token, attemptId, payload });
        return answer;
      }),
    abandon: ({ id, attemptId, token }, why) =>
      db.transaction(async (tx) => {
        const found = await read(tx, id);
        if (!found || judgeRenewal(found.record, { attemptId, token }) === "lost") return;
        await update(tx, found.row, { abandoned: true });
        await tx.note(id, { ...unsaid, what: "abandoned", who: found.row.holder, why, token, attemptId });
      }),
    resolve: (doubt, verdict, by) =>
      db.transaction(async (tx) => {
        const [found, history] = [await read(tx, doubt.id), await tx.history(doubt.id)];
        const decided = history.find((entry) => entry.decisionId === by.decisionId) ?? null;
        const { answer, change, history: what } = judgeVerdict(found?.record ?? null, doubt, verdict, decided);
        await apply(tx, found?.row, change);
        if (what) await tx.note(doubt.id, { ...decisionEntry(verdict, by), token: doubt.token, attemptId: null });
        return answer;
      }),
    queue: (request) => db.transaction((tx) => queue(tx, request)),
    leave: (id, ticketId) => db.transaction((tx) => tx.leave(id, ticketId)),
    line: (id) => db.transaction((tx) => tx.line(id)),
  };
}
