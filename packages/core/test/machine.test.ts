import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { randomId } from "../src/id.ts";
import { requestOf } from "../src/laws/requests.ts";
import {
  type Decided,
  deriveState,
  holdsFence,
  type Judged,
  judgeClaim,
  judgeRenewal,
  judgeSettlement,
  judgeVerdict,
  type StoredState,
  verdictEvent,
} from "../src/machine.ts";
import type {
  ClaimKind,
  ClaimRecord,
  ClaimRef,
  ClaimRequest,
  HistoryEvent,
  SettledState,
  StoredVerdict,
} from "../src/store.ts";

type Row = Omit<ClaimRecord, "state" | "readAt"> & { readonly stored: StoredState };

/** What somebody remembers of a claim that it made, or of a record that it read: any of it may be used at any time later. */
interface Attempt {
  readonly request: ClaimRequest;
  /** The token that it was told. */
  token: number | null;
}

type Step =
  | { readonly do: "claim"; readonly who: number; readonly again: boolean; readonly fresh: boolean }
  | { readonly do: "renew" | "abandon"; readonly who: number }
  | { readonly do: "settle"; readonly who: number; readonly state: SettledState }
  | { readonly do: "look" | "expire" }
  | {
      readonly do: "decide";
      readonly look: number;
      readonly state: StoredVerdict["state"];
      readonly repeat: boolean;
    };

/** One key, and everything that an outside observer can know of it, kept apart from what the machine knows. */
function world(kind: ClaimKind) {
  let row: Row | null = null;
  let clock = 0;
  const attempts: Attempt[] = [];
  const looks: ClaimRecord[] = [];
  const decisions = new Map<string, Decided>();
  const late = new Set<string>();
  const holders = new Map<number, string>();
  /** Since the last grant: what somebody recorded by which the effect may be executed again. */
  let freed: string[] = ["new"];

  function read(): ClaimRecord | null {
    if (row === null) return null;
    const { stored, ...facts } = row;
    return { ...facts, state: deriveState(row, clock), readAt: clock };
  }

  function apply(change: Judged<unknown>["change"]): void {
    if (change === undefined) return;
    if (row === null) throw new Error("a change of nothing");
    const version = row.version + 1;
    if (change.to === "settled") {
      const { state, payload, byVerdict } = change;
      row = { ...row, version, stored: state, payload, byVerdict, disputed: false, settledAt: clock };
    } else if (change.to === "disputed") {
      const open = { stored: "claimed", payload: null, byVerdict: false, settledAt: null } as const;
      row = { ...row, version, ...open, abandoned: true, disputed: true };
    } else if (change.to === "unlocked") {
      const { attemptId } = change;
      const clear = { abandoned: false, cancelRequested: false, payload: null, byVerdict: true } as const;
      row = { ...row, version, ...clear, stored: "released", attemptId, token: row.token + 1, settledAt: clock };
    } else row = { ...row, version, cancelRequested: true };
  }

  function refOf(who: number): ClaimRef | null {
    const attempt = pick(attempts, who);
    if (attempt === undefined || attempt.token === null) return null;
    return { id: attempt.request.id, attemptId: attempt.request.attemptId, token: attempt.token };
  }

  function claim({ who, again, fresh }: Step & { do: "claim" }): void {
    const before = read();
    const known = again ? pick(attempts, who) : undefined;
    const seen = fresh ? (before?.version ?? null) : (pick(looks, who)?.version ?? null);
    const attempt = known ?? { request: requestOf("model", kind, "key", { leaseMs: 1_000, seen }), token: null };
    if (known === undefined) attempts.push(attempt);
    const { request } = attempt;
    const judged = judgeClaim(before, request);
    const mine = before?.attemptId === request.attemptId;
    expect(judged === "won", "its own claim, held or not").toBe(mine && isOpen(before) && !before.abandoned);
    if (judged === "won") expect(before?.token).toBe(attempt.token);
    if (judged === "free") expect(kind === "effect" ? ["released"] : ["released", "lapsed"]).toContain(before?.state);
    if (judged !== "grant") return;
    expect(attempt.token, "a spent attempt id is granted again").toBeNull();
    if (kind === "effect") expect(freed, "a second execution without a recorded reason").not.toEqual([]);
    else expect(["released", "lapsed", undefined]).toContain(before?.state);
    freed = [];
    const token = (before?.token ?? 0) + 1;
    expect(holders.has(token), "two holders of one token").toBe(false);
    holders.set(token, request.attemptId);
    attempt.token = token;
    const { seen: _, fence, ...facts } = request;
    const flags = { abandoned: false, disputed: false, byVerdict: false, cancelRequested: false };
    const times = { leaseUntil: clock + request.leaseMs, createdAt: 0, claimedAt: clock, settledAt: null };
    const version = (before?.version ?? 0) + 1;
    row = { ...facts, ...flags, ...times, stored: "claimed", token, version, payload: null };
  }

  function renew({ who, do: action }: Step & { do: "renew" | "abandon" }): void {
    const ref = refOf(who);
    const before = read();
    if (ref === null || row === null || judgeRenewal(before, ref) === "lost") return;
    expect([before?.attemptId, before?.token, before?.abandoned]).toEqual([ref.attemptId, ref.token, false]);
    const change = action === "abandon" ? { abandoned: true } : { leaseUntil: clock + 1_000 };
    row = { ...row, ...change, version: row.version + 1 };
  }

  function settle({ who, state }: Step & { do: "settle" }): void {
    const ref = refOf(who);
    if (ref === null) return;
    const before = read();
    const payload = { format: "json", text: JSON.stringify([ref.attemptId, state]) };
    const recorded = late.has(`${ref.attemptId} ${state}`);
    const { answer, change, history } = judgeSettlement(before, { ...ref, state, payload }, recorded);
    apply(change);
    if (history !== undefined) {
      expect([history, recorded], "the same contradiction is noted twice").toEqual([`late-${state}`, false]);
      late.add(`${ref.attemptId} ${state}`);
    }
    const mine = before?.attemptId === ref.attemptId && before.token === ref.token;
    const contradicted = kind === "effect" && state === "released" && before?.cancelRequested === true;
    const shutsFreeKey = !mine && change?.to === "disputed" && before?.state === "released";
    if (change?.to === "cancel-requested") expect(mine || before?.state === "completed").toBe(false);
    else if (change !== undefined) expect(mine || shutsFreeKey, "a settlement of somebody else's claim").toBe(true);
    expect(answer === "settled").toBe(mine && isOpen(before) && !before.disputed && !contradicted);
    expect(answer === "settled").toBe(change?.to === "settled");
    if (answer === "settled" && state === "released") freed.push("released by its holder");
    if (mine && before.state === state && !before.byVerdict) expect(answer, "a repetition").toBe("already");
    if (mine && state === "completed" && kind === "effect" && before.byVerdict && before.state !== "completed")
      expect([answer, late.has(`${ref.attemptId} completed`)], "a late completed is not heard").toEqual([
        "disputed",
        true,
      ]);
    if (change?.to === "disputed") {
      if (mine && contradicted) expect(isOpen(before)).toBe(true);
      else if (shutsFreeKey) expect(state).toBe("completed");
      else {
        expect([state, before?.byVerdict]).toEqual(["completed", true]);
        expect(["released", "failed"]).toContain(before?.state);
      }
      freed = [];
    }
  }

  function decide({ look, state, repeat }: Step & { do: "decide" }): void {
    const doubt = pick(looks, look);
    if (doubt === undefined) return;
    const before = read();
    const decisionId = (repeat && pick([...decisions.keys()], look)) || randomId();
    const verdict = verdictOf(state);
    const { answer, change, history } = judgeVerdict(before, doubt, verdict, decisions.get(decisionId) ?? null);
    apply(change);
    const known = decisions.get(decisionId);
    if (known !== undefined)
      expect(answer, "a decision that comes again").toBe(
        known.what === verdictEvent(verdict) && known.token === doubt.token ? "already" : "refused",
      );
    if (answer !== "done") return void expect([change, history]).toEqual([undefined, undefined]);
    expect([before?.version, before?.token], "a verdict on something else than what was read").toEqual([
      doubt.version,
      doubt.token,
    ]);
    const [fits, event] = expected[state];
    expect(fits).toContain(before?.state);
    expect([history, kind]).toEqual([event, isAct(state) ? "lock" : "effect"]);
    if (state === "unlocked") holders.set(row?.token ?? 0, "nobody");
    decisions.set(decisionId, { what: history as HistoryEvent, token: doubt.token, payload: null });
    if (state === "released" || state === "reopened") freed.push(`${history}`);
  }

  function step(step: Step): void {
    switch (step.do) {
      case "expire":
        clock += 1_000;
        break;
      case "look":
        looks.push(...[read()].filter((record) => record !== null));
        break;
      case "claim":
        claim(step);
        break;
      case "renew":
      case "abandon":
        renew(step);
        break;
      case "settle":
        settle(step);
        break;
      case "decide":
        decide(step);
        break;
    }
  }

  return { read, step };
}

/** Acts on locks; all other verdicts are about effects. */
function isAct(state: StoredVerdict["state"]): boolean {
  return state === "unlocked" || state === "cancel-requested";
}

function verdictOf(state: StoredVerdict["state"]): StoredVerdict {
  if (state === "unlocked") return { state, attemptId: randomId() };
  return state === "reopened" || state === "cancel-requested" ? { state } : { state, payload: null };
}

/** What each verdict is about, and what the history then says. */
const expected: Record<StoredVerdict["state"], readonly [states: readonly string[], event: HistoryEvent]> = {
  completed: [["in-doubt"], "verdict-completed"],
  failed: [["in-doubt"], "verdict-failed"],
  released: [["in-doubt"], "verdict-released"],
  reopened: [["failed"], "reopened"],
  unlocked: [["claimed", "lapsed"], "unlocked"],
  "cancel-requested": [["claimed", "lapsed"], "cancel-requested"],
};

function isOpen(record: ClaimRecord | null): record is ClaimRecord {
  return record !== null && ["claimed", "in-doubt", "lapsed"].includes(record.state);
}

function pick<T>(items: readonly T[], index: number): T | undefined {
  return items[index % Math.max(1, items.length)];
}

const who = fc.nat(7);
const sometimes = fc.nat(3).map((one) => one === 0);
const settled = fc.constantFrom<SettledState>("completed", "failed", "released");
const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    fc.record({ do: fc.constant("claim" as const), who, again: sometimes, fresh: fc.boolean() }),
    fc.record({ do: fc.constantFrom("renew" as const, "abandon" as const), who }),
    fc.record({ do: fc.constant("settle" as const), who, state: settled }),
    fc.record({ do: fc.constantFrom("look" as const, "expire" as const) }),
    fc.record({
      do: fc.constant("decide" as const),
      look: who,
      state: fc.oneof(settled, fc.constantFrom("reopened" as const, "unlocked" as const, "cancel-requested" as const)),
      repeat: sometimes,
    }),
  ),
  { maxLength: 40, size: "max" },
);

/** What holds between the record before a step and the one after it, whoever did what. */
function invariants(before: ClaimRecord | null, after: ClaimRecord | null, step: Step): void {
  if (before === null || after === null) return void expect(before, "a row went away").toBeNull();
  const unlocked = step.do === "decide" && step.state === "unlocked" && before.kind === "lock";
  const grows = step.do === "claim" || unlocked ? [0, 1] : [0];
  expect(after.token - before.token, "tokens grow by one, by a claim or an unlock").toBeOneOf(grows);
  expect(after.version).toBeGreaterThanOrEqual(before.version);
  const { state: was, readAt: _, ...old } = before;
  const { state: is, readAt: __, ...now } = after;
  if (before.version === after.version) expect(now, "a change without a new version").toEqual(old);
  if (was === "completed" && !before.byVerdict) expect(is, "a settled claim is final").toBe("completed");
  if (was === "completed") expect(after.token).toBe(before.token);
  if (was === "failed" && is !== "failed")
    expect(step.do === "decide" || after.disputed, "failed is left by a person").toBe(true);
  if (was === "in-doubt" && is === "claimed") {
    expect([step.do, after.attemptId, before.abandoned]).toEqual(["renew", before.attemptId, false]);
  }
  if (was !== "released" && was !== "lapsed" && !unlocked) expect(after.token, "taken over").toBe(before.token);
  if (unlocked && after.token > before.token)
    expect([is, after.byVerdict, after.cancelRequested]).toEqual(["released", true, false]);
  if (before.disputed && !after.disputed) expect(step.do, "only a verdict ends a dispute").toBe("decide");
  if (was === "claimed" && is !== "claimed")
    expect(["expire", "abandon", "settle", unlocked && "decide"]).toContain(step.do);
}

describe("the state machine, in any order of steps by any attempts", () => {
  it.each<ClaimKind>(["effect", "lock"])("keeps the promises of one %s", { timeout: 60_000 }, (kind) => {
    const reached = new Set<string>();
    fc.assert(
      fc.property(steps, (sequence) => {
        const { read, step: take } = world(kind);
        for (const step of sequence) {
          const before = read();
          take(step);
          const after = read();
          invariants(before, after, step);
          if (after) reached.add(after.disputed ? "disputed" : after.state);
          if (after && after.token > 2) reached.add("third token");
          if (after?.cancelRequested) reached.add("asked to stop");
          if (after?.byVerdict && after.kind === "lock") reached.add("unlocked");
        }
      }),
      { numRuns: 1_000 },
    );
    const common = ["claimed", "completed", "failed", "released", "third token", "asked to stop"];
    const own = kind === "effect" ? ["in-doubt", "disputed"] : ["lapsed", "unlocked"];
    expect([...reached].sort()).toEqual([...common, ...own].sort());
  });
});

describe("a fence", () => {
  const request = requestOf("fence", "lock", "thread");
  const fence = { id: request.id, attemptId: request.attemptId, token: 3 };
  const { seen, fence: _, ...facts } = request;
  const times = { version: 1, leaseUntil: 10, createdAt: 0, claimedAt: 0, settledAt: null, readAt: 5 };
  const flags = { abandoned: false, disputed: false, byVerdict: false, cancelRequested: false, payload: null };
  const held: ClaimRecord = { ...facts, ...times, ...flags, token: 3, state: "claimed" };

  it("holds for the very claim of the lock, alive or lapsed, and where none was asked for", () => {
    expect(holdsFence(null, null)).toBe(true);
    expect(holdsFence(held, fence)).toBe(true);
    expect(holdsFence({ ...held, state: "lapsed" }, fence)).toBe(true);
  });

  it.each<readonly [string, ClaimRecord | null]>([
    ["without a row", null],
    ["of an effect", { ...held, kind: "effect" }],
    ["of another token", { ...held, token: 4 }],
    ["of another attempt", { ...held, attemptId: randomId() }],
    ["that was given up", { ...held, abandoned: true }],
    ["that was released", { ...held, state: "released" }],
  ])("does not hold for a lock %s", (_name, lock) => {
    expect(holdsFence(lock, fence)).toBe(false);
  });
});
