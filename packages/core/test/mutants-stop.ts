import { type Mutant, machine, store } from "./mutants.ts";

const unlocked = `isHeldLock(record) ? { to: "unlocked", attemptId: verdict.attemptId }`;
const asked = `isHeldLock(record) ? { to: "cancel-requested" }`;

/** Broken requests to stop, and broken unlocks. */
export const stopMutants: readonly Mutant[] = [
  machine(
    5,
    "a living holder's lock cannot be taken",
    unlocked,
    unlocked.replace(" ?", ` && record.state === "lapsed" ?`),
  ),
  machine(
    5,
    "a dead holder's lock cannot be taken",
    unlocked,
    unlocked.replace(" ?", ` && record.state === "claimed" ?`),
  ),
  machine(5, "a dead holder is not asked to stop", asked, asked.replace(" ?", ` && record.state === "claimed" ?`)),
  machine(
    5,
    "a holder that is asked to stop loses its lock",
    `return record.cancelRequested ? "cancel-requested" : "held";`,
    `return record.cancelRequested ? "lost" : "held";`,
  ),
  machine(
    5,
    "a holder that is asked to stop cannot release",
    `state === "released" && record.kind === "effect" && record.cancelRequested`,
    `state === "released" && record.cancelRequested`,
  ),
  store(
    5,
    "a request to stop ends the lease",
    "write(id, { cancelRequested: true })",
    "write(id, { cancelRequested: true, leaseUntil: now() })",
  ),
  store(
    5,
    "a renewal forgets the request to stop",
    "leaseUntil > record.leaseUntil ? { leaseUntil, leaseMs } : {}",
    `{ ...(record.kind === "lock" && { cancelRequested: false }), ...(leaseUntil > record.leaseUntil && { leaseUntil, leaseMs }) }`,
  ),
  store(
    5,
    "an unlock leaves the request to stop",
    "abandoned: false, cancelRequested: false, payload",
    "abandoned: false, payload",
  ),
  store(5, "an unlock leaves the abandonment", "{ abandoned: false, cancelRequested", "{ cancelRequested"),
  store(5, "an unlock is not marked as somebody else's", "token, byVerdict: true, settledAt", "token, settledAt"),
  store(5, "an unlock has no moment", "token, byVerdict: true, settledAt: now() }", "token, byVerdict: true }"),
  store(
    5,
    "an unlock gives up the effects of the run",
    "const { attemptId } = change;",
    `for (const each of [...rows.values()]) if (each.kind === "effect") write(each.id, { abandoned: true });\n        const { attemptId } = change;`,
  ),
  store(3, "an unlock leaves the token", "(rows.get(id)?.token ?? 0) + 1;", "rows.get(id)?.token ?? 0;"),
  store(
    5,
    "an unlock leaves the lock to its holder's attempt",
    "attemptId, token, byVerdict: true",
    "token, byVerdict: true",
  ),
  store(3, "an unlock only releases", `stored: "released", attemptId, token,`, `stored: "claimed", attemptId, token,`),
  machine(
    14,
    "who is asked to stop holds no fence",
    "isHeldBy(lock, fence))",
    "isHeldBy(lock, fence) && !lock.cancelRequested)",
  ),
  machine(
    14,
    "the fence stands on after an unlock",
    "isHeldBy(lock, fence))",
    `(isHeldBy(lock, fence) || (lock.byVerdict && lock.attemptId === fence.attemptId) || (lock.byVerdict && lock.token === fence.token + 1)))`,
  ),
  machine(
    13,
    "a decision id stands for any act on the lock",
    "decided.what === event && ",
    `(decided.what === event || record?.kind === "lock") && `,
  ),
  machine(
    13,
    "an unlock that is repeated takes the lock from the next holder",
    "if (decided !== null)",
    `if (decided !== null && verdict.state !== "unlocked")`,
  ),
  machine(
    13,
    "a request to stop that is repeated reaches the next holder",
    "const fits = record !== null && record.token === doubt.token && record.version === doubt.version;",
    `const fits = record !== null && (verdict.state === "cancel-requested" || (record.token === doubt.token && record.version === doubt.version));`,
  ),
  machine(
    13,
    "an unlocked lock is granted to the attempt that lost it",
    "if (!isFree(record) ||",
    `if (record.byVerdict && record.kind === "lock" && request.seen === null) return "grant";\n  if (!isFree(record) ||`,
  ),
  machine(
    15,
    "acts on locks are not in the history",
    `return change === undefined ? { answer: "refused" } : { answer: "done", change, history: event };`,
    `return change === undefined ? { answer: "refused" } : { answer: "done", change, ...(record?.kind === "effect" && { history: event }) };`,
  ),
  machine(
    18,
    "an effect is unlocked",
    unlocked,
    `record.state === "claimed" || isHeldLock(record) ? { to: "unlocked", attemptId: verdict.attemptId }`,
  ),
  machine(
    18,
    "an effect is asked to stop",
    asked,
    `record.state === "claimed" || isHeldLock(record) ? { to: "cancel-requested" }`,
  ),
  machine(
    18,
    "an unlock takes any version",
    "record.version === doubt.version;",
    `(verdict.state === "unlocked" || record.version === doubt.version);`,
  ),
  machine(
    18,
    "an unlock takes any token",
    "record.token === doubt.token &&",
    `(verdict.state === "unlocked" || record.token === doubt.token) &&`,
  ),
  machine(
    18,
    "a request to stop takes any version",
    "record.version === doubt.version;",
    `(verdict.state === "cancel-requested" || record.version === doubt.version);`,
  ),
  machine(
    18,
    "a lock that is free is taken",
    `record.kind === "lock" && (record.state === "claimed" ||`,
    `record.kind === "lock" && (record.state === "released" || record.state === "claimed" ||`,
  ),
  machine(
    18,
    "a lock that is settled otherwise is taken",
    `record.kind === "lock" && (record.state === "claimed" ||`,
    `record.kind === "lock" && (record.state === "failed" || record.state === "claimed" ||`,
  ),
];
