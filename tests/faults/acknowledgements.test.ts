import type { ClaimRef, Store } from "@twiceproof/core/store";
import { randomId } from "@twiceproof/core/store";
import { describeOn } from "@twiceproof/test-servers/vitest";
import { describe, expect, it } from "vitest";
import { cutAt, everywhere, type Scene, sceneOn } from "./support.ts";

const payload = { format: "json", text: '"done"' };

interface Action {
  /** Asks, with ids that stay the same. */
  ask(store: Store): Promise<unknown>;
  /** Whether the first question has landed. */
  landed(): Promise<boolean>;
  /** What the repeat may answer, when the first has landed and when it has not. */
  readonly after: unknown;
  readonly first: unknown;
  /** What stands in the end. */
  readonly state: object;
  readonly history: readonly string[];
  /** Of a lock: how many wait for it in the end. */
  readonly waiting?: number;
}

type Prepare = (scene: Scene, key: string) => Promise<Action>;

async function win({ store, request }: Scene, key: string, leaseMs = 60_000): Promise<ClaimRef> {
  const asked = request("effect", key, { leaseMs });
  const [result] = await store.claim([asked]);
  expect(result).toEqual({ answer: "won", token: 1 });
  return { id: asked.id, attemptId: asked.attemptId, token: 1 };
}

/** A lock that somebody has, and one who waits for it. */
async function waitFor({ store, request }: Scene, key: string) {
  const held = request("lock", key);
  await store.claim([held]);
  const ticket = { id: held.id, ticketId: randomId(), runId: null, holder: "waiter-1", leaseMs: 60_000, maxQueue: 9 };
  const release = () => store.settle([{ ...held, token: 1, state: "released", payload: null }]);
  return { held, ticket, release };
}

const actions: Readonly<Record<string, Prepare>> = {
  async claim(scene, key) {
    const asked = scene.request("effect", key);
    return {
      ask: async (store) => (await store.claim([asked]))[0],
      landed: async () => (await scene.record(key)) !== null,
      first: { answer: "won", token: 1 },
      after: { answer: "won", token: 1 },
      state: { state: "claimed", token: 1, attemptId: asked.attemptId, version: 1 },
      history: [],
    };
  },
  async "claim under a run"(scene, key) {
    const lock = scene.request("lock", `thread of ${key}`);
    await scene.store.claim([lock]);
    const asked = scene.request("effect", key, { fence: { id: lock.id, attemptId: lock.attemptId, token: 1 } });
    return {
      ask: async (store) => (await store.claim([asked]))[0],
      landed: async () => (await scene.record(key)) !== null,
      first: { answer: "won", token: 1 },
      after: { answer: "won", token: 1 },
      state: { state: "claimed", token: 1, attemptId: asked.attemptId, version: 1 },
      history: [],
    };
  },
  async "claim of a free key"(scene, key) {
    const ref = await win(scene, key);
    await scene.store.settle([{ ...ref, state: "released", payload: null }]);
    const asked = scene.request("effect", key, { seen: 2 });
    return {
      ask: async (store) => (await store.claim([asked]))[0],
      landed: async () => (await scene.record(key))?.token === 2,
      first: { answer: "won", token: 2 },
      after: { answer: "won", token: 2 },
      state: { state: "claimed", token: 2, attemptId: asked.attemptId, version: 3 },
      history: [],
    };
  },
  async settlement(scene, key) {
    const ref = await win(scene, key);
    return {
      ask: async (store) => (await store.settle([{ ...ref, state: "completed", payload }]))[0],
      landed: async () => (await scene.record(key))?.state === "completed",
      first: "settled",
      after: "already",
      state: { state: "completed", token: 1, version: 2, payload },
      history: [],
    };
  },
  async "late settlement"(scene, key) {
    const ref = await win(scene, key);
    await scene.store.abandon(ref, "gone");
    const by = { decisionId: randomId(), who: "ana", why: "asked", evidence: null };
    await scene.store.resolve({ id: ref.id, token: 1, version: 2 }, { state: "released", payload: null }, by);
    return {
      ask: async (store) => (await store.settle([{ ...ref, state: "completed", payload }]))[0],
      landed: async () => (await scene.record(key))?.disputed === true,
      first: "disputed",
      after: "disputed",
      state: { state: "in-doubt", disputed: true, token: 1, version: 4 },
      history: ["abandoned", "verdict-released", "late-completed"],
    };
  },
  async renewal(scene, key) {
    const ref = await win(scene, key, 1_000);
    return {
      ask: async (store) => (await store.renew([{ ...ref, leaseMs: 90_000 }]))[0],
      landed: async () => (await scene.record(key))?.leaseMs === 90_000,
      first: "held",
      after: "held",
      state: { state: "claimed", token: 1, leaseMs: 90_000 },
      history: [],
    };
  },
  async abandonment(scene, key) {
    const ref = await win(scene, key);
    return {
      ask: (store) => store.abandon(ref, "gone"),
      landed: async () => (await scene.record(key))?.abandoned === true,
      first: undefined,
      after: undefined,
      state: { state: "in-doubt", abandoned: true, token: 1, version: 2 },
      history: ["abandoned"],
    };
  },
  async verdict(scene, key) {
    const ref = await win(scene, key);
    await scene.store.abandon(ref, "gone");
    const by = { decisionId: randomId(), who: "ana", why: "asked", evidence: "mail" };
    const doubt = { id: ref.id, token: 1, version: 2 };
    return {
      ask: (store) => store.resolve(doubt, { state: "completed", payload }, by),
      landed: async () => (await scene.record(key))?.state === "completed",
      first: "done",
      after: "already",
      state: { state: "completed", byVerdict: true, version: 3, payload },
      history: ["abandoned", "verdict-completed"],
    };
  },
  async "entry into a line"(scene, key) {
    const { ticket } = await waitFor(scene, key);
    return {
      async ask(store) {
        const queued = await store.queue(ticket);
        return queued.answer === "queued" && queued.ahead;
      },
      landed: async () => (await scene.store.line(ticket.id)).length > 0,
      first: 0,
      after: 0,
      state: { state: "claimed", token: 1, version: 1 },
      history: [],
      waiting: 1,
    };
  },
  async "departure from a line"(scene, key) {
    const { ticket } = await waitFor(scene, key);
    await scene.store.queue(ticket);
    return {
      ask: (store) => store.leave(ticket.id, ticket.ticketId),
      landed: async () => (await scene.store.line(ticket.id)).length === 0,
      first: undefined,
      after: undefined,
      state: { state: "claimed", token: 1, version: 1 },
      history: [],
      waiting: 0,
    };
  },
  async "claim of one's turn"(scene, key) {
    const { held, ticket, release } = await waitFor(scene, key);
    await scene.store.queue(ticket);
    await scene.store.queue({ ...ticket, ticketId: randomId() });
    await release();
    const asked = { ...held, attemptId: randomId(), seen: 2, ticketId: ticket.ticketId };
    return {
      ask: async (store) => (await store.claim([asked]))[0],
      landed: async () => (await scene.record(key, "thread"))?.token === 2,
      first: { answer: "won", token: 2 },
      after: { answer: "won", token: 2 },
      state: { state: "claimed", token: 2, attemptId: asked.attemptId, version: 3 },
      history: [],
      waiting: 1,
    };
  },
  async unlock(scene, key) {
    const { held } = await waitFor(scene, key);
    const by = { decisionId: randomId(), who: "ana", why: "stuck", evidence: null };
    const attemptId = randomId();
    return {
      ask: (store) => store.resolve({ id: held.id, token: 1, version: 1 }, { state: "unlocked", attemptId }, by),
      landed: async () => (await scene.record(key, "thread"))?.state === "released",
      first: "done",
      after: "already",
      state: { state: "released", byVerdict: true, token: 2, attemptId, version: 2 },
      history: ["unlocked"],
      waiting: 0,
    };
  },
};

// Those of the servers side by side: they mostly wait.
describe.concurrent("answers that are lost", () => {
  describeOn(everywhere, "a connection that is lost", (server) => {
    for (const at of ["request", "answer"] as const) {
      it.concurrent.for(Object.entries(actions))(
        `13: at any ${at} of a %s: the repeat tells the truth, and nothing is there twice`,
        async ([, prepare], context) => {
          const scene = await sceneOn(server, context);
          const proxy = await scene.proxy();
          const { store } = scene.connect({ through: proxy, connections: 2 });
          await store.health();
          let cuts = 0;
          // Until the question came through before its turn to be cut.
          for (let nth = 1, wasCut = true; wasCut; nth++) {
            const key = `order:${nth}`;
            const { ask, landed, first, after, state, history, waiting } = await prepare(scene, key);
            const cut = cutAt(proxy, nth, at);
            const answer = await ask(store).catch((error: unknown) => error);
            wasCut = cut.done();
            if (wasCut) cuts++;
            if (answer instanceof Error) expect([wasCut, answer]).toMatchObject([true, { code: "STORE_UNAVAILABLE" }]);
            else expect(answer).toEqual(first);
            const hasLanded = await landed();
            const repeat = await ask(store);
            // A request that was cut off may land between our look and the repeat.
            if (hasLanded || !wasCut) expect(repeat).toEqual(after);
            else expect([first, after]).toContainEqual(repeat);
            expect(await ask(store)).toEqual(after);
            const record = await scene.record(key, waiting === undefined ? "effect" : "thread");
            const id = record?.id ?? "";
            expect(record).toMatchObject(state);
            expect((await scene.store.history(id)).map(({ what }) => what)).toEqual(history);
            expect(await scene.store.line(id)).toHaveLength(waiting ?? 0);
          }
          expect(cuts).toBeGreaterThan(0);
        },
      );
    }
  });
});
