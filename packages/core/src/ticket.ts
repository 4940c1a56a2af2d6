import type { Ticket, TicketRequest } from "./store.ts";

/** The rules of a line, as functions of those in it who are alive, first come first; for stores, like `machine.ts`. */

/** `enter`: at the end. `renew`: less than two thirds of the lease is left. `keep`: nothing is to be written. */
export function judgeTicket(
  line: readonly Ticket[],
  { ticketId, leaseMs, maxQueue }: TicketRequest,
): "full" | "enter" | "renew" | "keep" {
  const mine = line.find((ticket) => ticket.ticketId === ticketId);
  if (mine === undefined) return line.length < maxQueue ? "enter" : "full";
  return mine.leaseUntil - mine.readAt > (leaseMs * 2) / 3 ? "keep" : "renew";
}

/** How many wait before this ticket; before a claimant without one all do. */
export function ticketsAhead(line: readonly Ticket[], ticketId: string | undefined): number {
  const place = line.findIndex((ticket) => ticket.ticketId === ticketId);
  return place === -1 ? line.length : place;
}
