import {
  decisionEntry,
  deriveState,
  holdsFence,
  type Judged,
  judgeClaim,
  judgeRenewal,
  judgeSettlement,
  judgeVerdict,
  type StoredState,
} from "./machine.ts";
import { pageOf, placeOf } from "./page.ts";
import type {
  ClaimRecord,
  ClaimRef,
  ClaimRequest,
  ClaimResult,
  Decision,
  DoubtRef,
  HistoryEntry,
  ListQuery,
  Page,
  Payload,
  PruneQuery,
  Queued,
  Renewal,
  Renewed,
  Resolved,
  Settled,
  Settlement,
  Store,
  StoredVerdict,
  Ticket,
  TicketRequest,
} from "./store.ts";
import { judgeTicket, ticketsAhead } from "./ticket.ts";

/** Captured when the module loads: fake timers in a user's tests must not stop the leases. */
const wall = Date.now;

type Row = Omit<ClaimRecord, "state" | "readAt"> & { readonly stored: StoredState };

export interface MemoryStoreOptions {
  /** The store's clock, milliseconds since 1970. */
  readonly now?: () => number;
}

/**
 * The reference store, for tests and for development in one process: it shares nothing with other processes, nor with
 * another memory store, and forgets everything with the process. Every method acts in one step; what it hands out is frozen.
 */
export function memoryStore(options: MemoryStoreOptions = {}): Store {
  const clock = options.now ?? wall;
  const now = (): number => Math.floor(clock());
  const rows = new Map<string, Row>();
  const histories = new Map<string, readonly HistoryEntry[]>();
  const lines = new Map<string, readonly Ticket[]>();

  function read(id: string): ClaimRecord | null {
    const row = rows.get(id);
    if (row === undefined) return null;
    const { stored, ...facts } = row;
    const readAt = now();
    return Object.freeze({ ...facts, state: deriveState(row, readAt), readAt });
  }

  function write(id: string, change: Partial<Row>): void {
    const row = rows.get(id);
    if (row !== undefined) rows.set(id, { ...row, ...change, version: row.version + 1 });
  }

  function living(id: string): readonly Ticket[] {
    const readAt = now();
    const line = (lines.get(id) ?? []).filter(({ leaseUntil }) => leaseUntil > readAt);
    return line.map((ticket) => Object.freeze({ ...ticket, readAt }));
  }

  function drop(id: string, ticketId: string | undefined): void {
    const others = living(id).filter((ticket) => ticket.ticketId !== ticketId);
    lines.set(id, others);
  }

  function note(id: string, entry: Omit<HistoryEntry, "at">): void {
    const dated = Object.freeze({ ...entry, payload: kept(entry.payload), at: now() });
    histories.set(id, Object.freeze([...past(id), dated]));
  }

  function past(id: string): readonly HistoryEntry[] {
    return histories.get(id) ?? [];
  }

  function apply(id: string, change: Judged<unknown>["change"]): void {
    if (change === undefined) return;
    switch (change.to) {
      case "settled": {
        const { state, payload, byVerdict } = change;
        write(id, { stored: state, payload: kept(payload), byVerdict, disputed: false, settledAt: now() });
        break;
      }
      case "disputed": {
        const open = { stored: "claimed", payload: null, byVerdict: false, settledAt: null } as const;
        write(id, { ...open, abandoned: true, disputed: true });
        break;
      }
      case "cancel-requested":
        write(id, { cancelRequested: true });
        break;
      case "unlocked": {
        const { attemptId } = change;
        const token = (rows.get(id)?.token ?? 0) + 1;
        const open = { abandoned: false, cancelRequested: false, payload: null } as const;
        write(id, { ...open, stored: "released", attemptId, token, byVerdict: true, settledAt: now() });
        break;
      }
    }
  }

  function claim(request: ClaimRequest): ClaimResult {
    const record = read(request.id);
    const judged = judgeClaim(record, request);
    if (record !== null && judged === "won") return { answer: "won", token: record.token };
    if (judged !== "taken" && ticketsAhead(living(request.id), request.ticketId) > 0)
      return { answer: "behind", record };
    if (record !== null && judged !== "grant") return { answer: judged === "free" ? "free" : "taken", record };
    const lock = request.fence === null ? null : read(request.fence.id);
    if (!holdsFence(lock, request.fence)) return { answer: "fenced", record: lock };
    const granted = grant(record, request, now());
    rows.set(request.id, granted);
    drop(request.id, request.ticketId);
    return { answer: "won", token: granted.token };
  }

  function queue(request: TicketRequest): Queued {
    const { id, maxQueue, leaseMs, ...facts } = request;
    const line = living(id);
    const at = now();
    const leaseUntil = at + leaseMs;
    switch (judgeTicket(line, request)) {
      case "full":
        return { answer: "full", depth: line.length };
      case "enter":
        lines.set(id, [...line, { ...facts, queuedAt: at, leaseUntil, readAt: at }]);
        break;
      case "renew":
        lines.set(
          id,
          line.map((each) => (each.ticketId === facts.ticketId ? { ...each, leaseUntil } : each)),
        );
        break;
      case "keep":
        break;
    }
    return { answer: "queued", ahead: ticketsAhead(living(id), facts.ticketId), record: read(id) };
  }

  function renew({ leaseMs, ...ref }: Renewal): Renewed {
    const record = read(ref.id);
    const answer = judgeRenewal(record, ref);
    if (record === null || answer === "lost") return "lost";
    const leaseUntil = now() + leaseMs;
    write(ref.id, leaseUntil > record.leaseUntil ? { leaseUntil, leaseMs } : {});
    return answer;
  }

  function settle(settlement: Settlement): Settled {
    const { id, attemptId, token, state, payload } = settlement;
    const recorded = past(id).some((entry) => entry.attemptId === attemptId && entry.what === `late-${state}`);
    const { answer, change, history } = judgeSettlement(read(id), settlement, recorded);
    apply(id, change);
    const unsaid = { who: null, why: null, evidence: null, decisionId: null };
    if (history !== undefined) note(id, { ...unsaid, what: history, token, attemptId, payload });
    return answer;
  }

  return {
    async claim(requests) {
      return requests.map(claim);
    },

    async renew(renewals) {
      return renewals.map(renew);
    },

    async settle(settlements) {
      return settlements.map(settle);
    },

    async abandon({ id, attemptId, token }: ClaimRef, reason: string): Promise<void> {
      const record = read(id);
      if (record === null || judgeRenewal(record, { attemptId, token }) === "lost") return;
      write(id, { abandoned: true });
      const unsaid = { evidence: null, decisionId: null, payload: null };
      note(id, { ...unsaid, what: "abandoned", who: record.holder, why: reason, token, attemptId });
    },

    async resolve(doubt: DoubtRef, verdict: StoredVerdict, by: Decision): Promise<Resolved> {
      const decided = past(doubt.id).find((entry) => entry.decisionId === by.decisionId) ?? null;
      const { answer, change, history } = judgeVerdict(read(doubt.id), doubt, verdict, decided);
      apply(doubt.id, change);
      if (history !== undefined) note(doubt.id, { ...decisionEntry(verdict, by), token: doubt.token, attemptId: null });
      return answer;
    },

    async queue(request) {
      return queue(request);
    },

    async leave(id, ticketId) {
      drop(id, ticketId);
    },

    async line(id) {
      return living(id);
    },

    async get(ids) {
      return ids.map(read);
    },

    async list(query: ListQuery): Promise<Page> {
      const { createdAt, id } = placeOf(query.after);
      const follows = (record: ClaimRecord): boolean =>
        record.createdAt > createdAt || (record.createdAt === createdAt && record.id > id);
      const found = [...rows.keys()]
        .flatMap((key) => read(key) ?? [])
        .filter((each) => fits(each, query) && follows(each));
      const sorted = found.sort((a, b) => a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1));
      return pageOf(sorted, query.limit);
    },

    async history(id) {
      return past(id);
    },

    async prune({ namespace, olderThanMs, limit, keepKeys = false }: PruneQuery): Promise<number> {
      const before = now() - olderThanMs;
      const removed = [...rows.values()]
        .filter((row) => row.namespace === namespace && row.kind === "effect")
        .filter((row) => row.settledAt !== null && row.settledAt < before)
        .filter((row) => !keepKeys || row.payload !== null)
        .slice(0, limit);
      for (const { id } of removed) {
        if (keepKeys) {
          write(id, { payload: null });
          histories.set(
            id,
            past(id).map((entry) => Object.freeze({ ...entry, payload: null })),
          );
          continue;
        }
        rows.delete(id);
        histories.delete(id);
      }
      return removed.length;
    },

    async migrate() {},

    async health() {
      const alone = "The memory store lives in this process alone: nothing is shared, and nothing survives a restart.";
      return { now: now(), warnings: [alone] };
    },

    async close() {},
  };
}

/** A new claim keeps only what names the row, and counts on. */
function grant(record: ClaimRecord | null, request: ClaimRequest, at: number): Row {
  const { seen, fence, ticketId, ...facts } = request;
  return {
    ...facts,
    stored: "claimed",
    token: (record?.token ?? 0) + 1,
    version: (record?.version ?? 0) + 1,
    leaseUntil: at + request.leaseMs,
    createdAt: record?.createdAt ?? at,
    claimedAt: at,
    settledAt: null,
    abandoned: false,
    disputed: false,
    byVerdict: false,
    cancelRequested: false,
    payload: null,
  };
}

function kept(payload: Payload | null): Payload | null {
  return payload && Object.freeze({ format: payload.format, text: payload.text });
}

function fits(record: ClaimRecord, query: ListQuery): boolean {
  const { namespace, kind, state, scope, name } = query;
  return (
    record.namespace === namespace &&
    (kind === undefined || record.kind === kind) &&
    (state === undefined || record.state === state) &&
    (scope === undefined || record.scope === scope) &&
    (name === undefined || record.name === name)
  );
}

/** Sorts by time of creation, then id, as text. */
