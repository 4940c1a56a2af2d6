import { randomId } from "@twiceproof/core/store";
import { describeOn } from "@twiceproof/test-servers/vitest";
import { expect, it } from "vitest";
import { mysqlStore } from "../src/index.ts";
import { connectionOn, lock, poolOn, scratchUrl, someWait, storeOn, ticket, win } from "./support/scratch.ts";

const levels = ["read committed", "repeatable read", "serializable"];
const id = lock("thread").id;
/** Halfway through, by hand: an entry that has the lock's row and its place, and a claim that has the row. */
const entry = [
  `select id from twiceproof_claims where id = unhex('${id}') for update`,
  `insert into twiceproof_line (claim_id, place, ticket_id, holder, queued_at, lease_until)
    values (unhex('${id}'), 1, unhex('${randomId()}'), 'other', 1, 9e15)`,
];
const claim = [
  `update twiceproof_claims set state = 'claimed', token = 2, version = version + 1, attempt_id = unhex('${randomId()}'),
    lease_until = 9e15 where id = unhex('${id}')`,
];

/** What a race meets only now and then, in one order after the other. */
describeOn(["mariadb", "mysql"], "a line", (server) => {
  async function scene(level: string, statements: readonly string[]) {
    const url = await scratchUrl(server.url);
    const store = await storeOn(url, {}, `transaction isolation level ${level}`);
    const ref = await win(store, lock("thread"));
    await store.settle([{ ...ref, state: "released", payload: null }]);
    const [record] = await store.get([ref.id]);
    const other = await connectionOn(url);
    await other.query("start transaction");
    for (const statement of statements) await other.query(statement);
    return { store, other, seen: record?.version ?? null };
  }

  for (const level of levels) {
    it.each([
      ["commit", { answer: "behind", record: { state: "released", token: 1 } }],
      ["rollback", { answer: "won", token: 2 }],
    ])(
      `${level}: a claim without a place that waited for an entry looks at the line after it: %s`,
      async (end, expected) => {
        // One that has its place already, and one that has the lock's row alone when the claim comes.
        for (const before of [2, 1]) {
          const { store, other, seen } = await scene(level, entry.slice(0, before));
          const claimed = store.claim([lock("thread", { seen })]);
          await someWait(other);
          for (const statement of entry.slice(before)) await other.query(statement);
          await other.query(end);
          expect(await claimed).toMatchObject([expected]);
          expect((await store.get([id]))[0]).toMatchObject({ token: end === "commit" ? 1 : 2 });
        }
      },
    );

    it.each([
      ["commit", { state: "claimed", token: 2 }],
      ["rollback", { state: "released", token: 1 }],
    ])(`${level}: an entry that waited for a claim tells what became of it: %s`, async (end, record) => {
      const { store, other } = await scene(level, claim);
      const queued = store.queue(ticket("thread"));
      await someWait(other);
      await other.query(end);
      expect(await queued).toMatchObject({ answer: "queued", ahead: 0, record });
    });

    it.each([
      ["commit", 1],
      ["rollback", 0],
    ])(`${level}: an entry that waited for another's stands behind it, if it came about: %s`, async (end, ahead) => {
      // The second has no row to wait for, as of a lock that nobody ever held: the place is what they meet on.
      for (const statements of [entry, entry.slice(1)]) {
        const { store, other } = await scene(level, statements);
        const queued = store.queue(ticket("thread"));
        await someWait(other);
        await other.query(end);
        expect(await queued).toMatchObject({ answer: "queued", ahead });
        expect(await store.line(id)).toHaveLength(ahead + 1);
      }
    });
  }

  it("tells a place that is kept in one look, and writes nothing for it", async () => {
    const pool = poolOn(await scratchUrl(server.url), { connectionLimit: 1 });
    const store = mysqlStore(pool);
    await store.migrate();
    await win(store, lock("thread"));
    const mine = ticket("thread");
    await store.queue(ticket("thread"));
    await store.queue(mine);
    const counters = async () => {
      const names = ["Com_select", "Com_begin", "Com_insert", "Com_update", "Handler_update", "Handler_delete"];
      const [rows] = await pool.query(`show session status where variable_name in ('${names.join("', '")}')`);
      return Object.fromEntries(
        (rows as { Variable_name: string; Value: string }[]).map((row) => [row.Variable_name, Number(row.Value)]),
      );
    };
    const before = await counters();
    for (let round = 0; round < 3; round++)
      expect(await store.queue(mine)).toMatchObject({ ahead: 1, record: { state: "claimed" } });
    expect(await counters()).toEqual({ ...before, Com_select: (before.Com_select ?? 0) + 3 });
    await store.queue({ ...mine, leaseMs: 120_000 });
    expect(await counters()).toMatchObject({ Com_update: (before.Com_update ?? 0) + 1 });
  });

  it("keeps no row of those who are gone for longer than until the next one enters", async () => {
    const url = await scratchUrl(server.url);
    const store = await storeOn(url);
    const gone = Array.from({ length: 5 }, () => ticket("thread"));
    for (const each of gone) await store.queue(each);
    for (const each of gone) await store.leave(each.id, each.ticketId);
    expect(await store.queue(ticket("thread"))).toMatchObject({ ahead: 0 });
    const [rows] = await (await connectionOn(url)).query("select place from twiceproof_line");
    expect(rows).toEqual([{ place: 6 }]);
  });

  it("turns nobody away of many who enter at once", { timeout: 60_000 }, async () => {
    const url = await scratchUrl(server.url);
    const stores = await Promise.all([1, 2, 3].map(() => storeOn(url)));
    await win(await storeOn(url), lock("thread"));
    for (const key of ["thread", "never held"]) {
      const tickets = Array.from({ length: 40 }, () => ticket(key, { maxQueue: 40 }));
      const answers = await Promise.all(tickets.map((each, index) => stores[index % 3]?.queue(each)));
      const places = answers.map((queued) => (queued?.answer === "queued" ? queued.ahead : -1));
      expect(places.toSorted((a, b) => a - b)).toEqual(tickets.map((_, index) => index));
    }
  });
});
