import { expect, it } from "vitest";
import type { Ticket } from "../src/store.ts";
import { judgeTicket, ticketsAhead } from "../src/ticket.ts";

const ticket = (ticketId: string, leaseUntil = 10_000): Ticket => ({
  ticketId,
  runId: null,
  holder: "waiter",
  queuedAt: 0,
  leaseUntil,
  readAt: 4_000,
});
const asks = (ticketId: string, maxQueue: number) => ({
  ...{ id: "lock", ticketId, runId: null, holder: "waiter", leaseMs: 6_000, maxQueue },
});
const line = [ticket("a"), ticket("b", 8_001), ticket("c", 8_000)];

it("counts those before a ticket, and all before whoever has none", () => {
  expect(["a", "c", "other", undefined].map((each) => ticketsAhead(line, each))).toEqual([0, 2, 3, 3]);
});

it("enters while there is room, and turns nobody out", () => {
  expect([4, 3].map((most) => judgeTicket(line, asks("d", most)))).toEqual(["enter", "full"]);
  expect(judgeTicket(line, asks("a", 1))).toBe("keep");
});

it("writes for a ticket that has two thirds of its lease left, or less, and not before", () => {
  expect(["b", "c"].map((each) => judgeTicket(line, asks(each, 9)))).toEqual(["keep", "renew"]);
});
