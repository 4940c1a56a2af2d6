import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { type StoreHarness, storeLaws } from "../src/laws.ts";
import { deriveState } from "../src/machine.ts";
import { pageOf, placeOf } from "../src/page.ts";
import type { ClaimRecord, HistoryEntry, Store, Ticket } from "../src/store.ts";
import { type Database, type Row, slowStore, type Transaction } from "./laws-skeleton.ts";

const day = 86_400_000;

/** The least that can be called a database: one transaction after the other, in one process. */
function database() {
  let aheadMs = 0;
  const rows = new Map<string, Row>();
  const histories = new Map<string, HistoryEntry[]>();
  const lines = new Map<string, Omit<Ticket, "readAt">[]>();
  const now = () => Date.now() + aheadMs;
  const others = (id: string, ticketId: string) => (lines.get(id) ?? []).filter((each) => each.ticketId !== ticketId);
  const tx: Transaction = {
    now: async () => now(),
    lock: async (id) => rows.get(id) ?? null,
    write: async (row) => void rows.set(row.id, structuredClone(row)),
    history: async (id) => structuredClone(histories.get(id) ?? []),
    note: async (id, entry) => void histories.set(id, [...(histories.get(id) ?? []), { ...entry, at: now() }]),
    line: async (id) => {
      const readAt = now();
      return (lines.get(id) ?? []).flatMap((each) => (each.leaseUntil > readAt ? [{ ...each, readAt }] : []));
    },
    enter: async (id, ticket) => void lines.set(id, [...others(id, ticket.ticketId), ticket]),
    extend: async (id, ticketId, leaseUntil) => {
      const line = lines.get(id) ?? [];
      lines.set(
        id,
        line.map((each) => (each.ticketId === ticketId ? { ...each, leaseUntil } : each)),
      );
    },
    leave: async (id, ticketId) => void lines.set(id, others(id, ticketId)),
  };
  let last: Promise<unknown> = Promise.resolve();
  const db: Database = {
    async transaction<T>(work: (tx: Transaction) => Promise<T>): Promise<T> {
      const result = last.then(() => work(tx));
      last = result.catch(() => undefined);
      return await result;
    },
  };
  const expire = () => {
    aheadMs += day;
  };
  return { db, rows, histories, now, expire };
}

/** What the skeleton leaves to its reader. */
function rest({ rows, histories, now }: ReturnType<typeof database>): Omit<Store, keyof ReturnType<typeof slowStore>> {
  const read = (row: Row | undefined): ClaimRecord | null => {
    if (row === undefined) return null;
    const { stored, ...facts } = structuredClone(row);
    return { ...facts, state: deriveState(row, now()), readAt: now() };
  };
  return {
    get: async (ids) => ids.map((id) => read(rows.get(id))),
    history: async (id) => structuredClone(histories.get(id) ?? []),
    async list({ limit, after, ...wanted }) {
      const place = placeOf(after);
      const asked = Object.entries(wanted).filter(([, value]) => value !== undefined);
      const found = [...rows.values()]
        .flatMap((row) => read(row) ?? [])
        .filter((record) => asked.every(([name, value]) => record[name as keyof ClaimRecord] === value))
        .sort((a, b) => a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1))
        .filter(({ createdAt, id }) => createdAt > place.createdAt || (createdAt === place.createdAt && id > place.id));
      return pageOf(found, limit);
    },
    async prune({ namespace, olderThanMs, limit, keepKeys = false }) {
      const over = [...rows.values()]
        .filter((row) => row.namespace === namespace && row.kind === "effect" && (row.payload !== null || !keepKeys))
        .filter(({ settledAt }) => settledAt !== null && settledAt < now() - olderThanMs)
        .slice(0, limit);
      for (const row of over) {
        const { id, version } = row;
        const history = histories.get(id) ?? [];
        rows.delete(id);
        histories.delete(id);
        if (!keepKeys) continue;
        rows.set(id, { ...row, payload: null, version: version + 1 });
        histories.set(
          id,
          history.map((entry) => ({ ...entry, payload: null })),
        );
      }
      return over.length;
    },
    migrate: async () => undefined,
    health: async () => ({ now: now(), warnings: ["It is gone with its process."] }),
    close: async () => undefined,
  };
}

function harness(): StoreHarness {
  const here = database();
  return {
    connect: async () => ({ ...slowStore(here.db), ...rest(here) }),
    expireLeases: async () => here.expire(),
    close: async () => undefined,
  };
}

describe("the skeleton of the guide", () => {
  it("is what the guide shows", () => {
    const [guide, skeleton] = ["../../../docs/writing-a-store.md", "./laws-skeleton.ts"].map((file) =>
      readFileSync(new URL(file, import.meta.url), "utf8"),
    );
    expect(guide).toContain(`\n\`\`\`ts\n${skeleton}\`\`\`\n`);
  });

  it.each(storeLaws)("$number: $name", (law) => law.check(harness()));
});
