import { beforeAll, describe, expect, test } from "vitest";
import { approved, post, user } from "./support/client.ts";
import { openPlace, type Place } from "./support/place.ts";
import { atEnd } from "./support/processes.ts";
import type { AiVersion, Post, Said } from "./support/protocol.ts";

const versions: readonly AiVersion[] = ["ai-v5", "ai-v6", "ai-v7"];
const end: Said = { text: "That is all." };

describe.concurrent.each(versions)("two servers on one database, %s", (version) => {
  let place: Place;
  let one: string;
  let two: string;
  const onEnd = atEnd();
  beforeAll(async () => {
    place = await openPlace(version, onEnd);
    const servers = await Promise.all([place.start(onEnd), place.start(onEnd)]);
    [one, two] = servers.map(({ url }) => url) as [string, string];
  });

  /** Each test has an order and a chat of its own. */
  function charge(order: string, call = "call_1", cents = 4200): Said {
    return { call, tool: "charge", input: { orderId: order, cents } };
  }
  function asking(order: string, ...script: readonly Said[]): Post {
    return { id: `chat-${order}`, messages: [user(`Charge ${order}`)], script };
  }
  async function asked(server: string, order: string): Promise<number> {
    return (await (await fetch(`${server}/asked?chat=chat-${order}`)).json()) as number;
  }

  // Version 5 has no approvals.
  test.for<Partial<Post>>(version === "ai-v5" ? [] : [{}, { onBusy: "wait" }, { lock: false }])(
    "1: one approval, posted to both at once and later from a stale tab: %j",
    async (way) => {
      const order = `approved-${Object.keys(way).join()}`;
      const request = { ...asking(order, charge(order)), approval: true };
      const answer = {
        ...request,
        messages: [...request.messages, approved(await post(one, request))],
        script: [end],
        ...way,
      };
      const replies = await Promise.all([post(one, answer), post(two, answer)]);
      replies.push(await post(two, answer));
      const [receipt, ...more] = await place.charges(order);
      expect(more).toEqual([]);
      for (const { outputs, errors } of replies) {
        expect(outputs).toEqual([{ id: receipt?.id }]);
        expect(errors).toEqual([]);
      }
    },
  );

  test("1: two messages at once, to two servers: one turn after the other, and both are kept", async () => {
    const say = (text: string): Post => ({ id: "chat-turns", messages: [], script: [{ text }], load: true });
    const turn = (name: string): Post => ({ ...say(`answer ${name}`), messages: [user(name, name)], onBusy: "wait" });
    await Promise.all([post(one, turn("one")), post(two, turn("two"))]);
    const { chunks } = await post(one, { ...say("that is all"), messages: [user("three", "three")] });
    expect(chunks.length).toBeGreaterThan(0);
    const saved = place.saved("chat-turns").map(({ parts }) => JSON.stringify(parts));
    expect(saved).toHaveLength(6);
    const [asked, answer, askedNext, answerNext] = saved.map((it) => /one|two/.exec(it)?.[0]);
    expect([answer, answerNext]).toEqual([asked, askedNext]);
    expect(new Set([asked, askedNext])).toEqual(new Set(["one", "two"]));
  });

  test("a client that leaves while it waits leaves the line, and its run does not begin", async () => {
    await place.setBusy("line", true);
    const first = post(one, asking("line", charge("line"), end));
    await place.charged("line", 1);
    const page = new AbortController();
    const left = post(two, { ...asking("line", charge("line"), end), onBusy: "wait" }, page.signal);
    await place.queued("chat-line", 1);
    page.abort();
    await expect(left).rejects.toThrow("abort");
    await place.queued("chat-line", 0);
    await place.setBusy("line", false);
    expect((await first).outputs).toHaveLength(1);
    expect(await asked(two, "line")).toBe(0);
  });

  test("5: interrupted by another server: the page gets the code, the call is recorded, the next turn has it", async () => {
    await place.setBusy("stop", true);
    const first = post(one, asking("stop", charge("stop"), end));
    await place.charged("stop", 1);
    const next: Post = { ...asking("stop", end), messages: [user("And?", "message-3")], load: true };
    const second = post(two, { ...next, onBusy: "interrupt" });
    expect((await first).errors.at(-1)).toMatch(/^RUN_CANCELLED: /);
    expect((await second).errors).toEqual([]);
    const [receipt, ...more] = await place.charges("stop");
    expect(more).toEqual([]);
    expect(JSON.stringify(place.saved("chat-stop"))).toContain(JSON.stringify({ id: receipt?.id }));
  });

  test("1: the same body posted again, at once and later", async () => {
    const again = (call: string) => asking("again", charge("again", call), end);
    const replies = await Promise.all([post(one, again("call_1")), post(two, again("call_2"))]);
    replies.push(await post(one, again("call_3")));
    const charges = await place.charges("again");
    expect(charges).toHaveLength(1);
    for (const { outputs } of replies) expect(outputs).toEqual([{ id: charges[0]?.id }]);
  });

  test("7: a regenerated answer tells the charge that was made", async () => {
    const first = await post(one, asking("regenerate", charge("regenerate"), end));
    const second = await post(
      two,
      asking(
        "regenerate",
        { call: "call_7", tool: "balance", input: { orderId: "regenerate" } },
        charge("regenerate", "call_8"),
        end,
      ),
    );
    expect(second.outputs).toEqual([{ charges: 1 }, ...first.outputs]);
    expect(await place.charges("regenerate")).toHaveLength(1);
  });

  test("an edited message is a new request, though it keeps its id", async () => {
    const first = asking("edited", charge("edited"), end);
    await post(one, first);
    await post(two, { ...first, messages: [user("Charge edited, once more")] });
    expect(await place.charges("edited")).toHaveLength(2);
    await post(one, { ...first, messages: [user("Charge edited, once more")] });
    expect(await place.charges("edited")).toHaveLength(2);
  });

  test("call ids that the provider gives twice confuse no two calls", async () => {
    const id = "functions.charge:0";
    const first = asking("collide", charge("collide", id, 500), end);
    const turns = [user("Charge 5"), user("Charge 7", "message-3"), user("Charge 7 again", "message-5")];
    const replies = [await post(one, { ...first, messages: turns.slice(0, 1) })];
    const seven = { ...first, script: [charge("collide", id, 700), end] };
    replies.push(await post(two, { ...seven, messages: turns.slice(0, 2) }));
    replies.push(await post(one, { ...seven, messages: turns }));
    const charges = await place.charges("collide");
    expect(charges).toMatchObject([{ cents: 500 }, { cents: 700 }, { cents: 700 }]);
    expect(replies.map(({ outputs }) => outputs)).toEqual(charges.map(({ id }) => [{ id }]));
  });

  test("7: the page leaves while the tool runs: it is recorded, and told to whoever asks again", async () => {
    await place.setBusy("left", true);
    const leave = new AbortController();
    const left = post(one, asking("left", charge("left"), end), leave.signal);
    await place.charged("left", 1);
    leave.abort();
    await expect(left).rejects.toThrow("abort");
    await place.setBusy("left", false);
    const { outputs } = await post(two, asking("left", charge("left", "call_2"), end));
    expect(outputs).toEqual([{ id: (await place.charges("left"))[0]?.id }]);
    expect(await place.charges("left")).toHaveLength(1);

    // The page had saved the chat as it saw it last. The SDK would refuse to go on from there.
    const part = { type: "tool-charge", toolCallId: "call_1", state: "input-available" };
    const parts = [{ type: "step-start" }, { ...part, input: { orderId: "left", cents: 4200 } }];
    const { messages } = asking("left");
    const saved = [...messages, { id: "message-2", role: "assistant", parts } as const, user("Thanks.", "message-3")];
    const next = await post(two, { ...asking("left", end), messages: saved });
    expect(next.errors).toEqual([]);
    expect(next.chunks).toContainEqual(expect.objectContaining({ type: "text-delta", delta: "That is all." }));
  });

  test.for([true, false])(
    "2: the server dies after the charge: nobody charges again, also a model that tries, with run.loop: %s",
    async (loop, { onTestFinished }) => {
      const order = `killed-${loop}`;
      const victim = await place.start(onTestFinished, 1_000);
      await place.setBusy(order, true);
      const died = post(victim.url, asking(order, charge(order))).catch(() => "died");
      await place.charged(order, 1);
      await victim.kill();
      expect(await died).toBe("died");
      await place.setBusy(order, false);

      const retried = asking(order, charge(order, "call_2"), charge(order, "call_3"), end);
      const { errors, outputs } = await post(one, loop ? retried : { ...retried, loop: false });
      expect(outputs).toEqual([]);
      expect(errors.length).toBeGreaterThan(0);
      for (const error of errors) expect(error).toMatch(/^EFFECT_IN_DOUBT: /);
      expect(await asked(one, order)).toBe(loop ? 1 : 3);
      // And who comes later, by the other server.
      expect((await post(two, asking(order, charge(order, "call_4")))).errors[0]).toMatch(/^EFFECT_IN_DOUBT: /);
      expect(await place.charges(order)).toHaveLength(1);
    },
  );

  test("a tool that reads is asked each time", async () => {
    const look = (call: string): Said => ({ call, tool: "balance", input: { orderId: "polled" } });
    const script = [look("call_1"), charge("polled", "call_2"), look("call_3"), end];
    const first = await post(one, asking("polled", ...script));
    const receipt = { id: (await place.charges("polled"))[0]?.id };
    expect(first.outputs).toEqual([{ charges: 0 }, receipt, { charges: 1 }]);
    const second = await post(two, asking("polled", ...script));
    expect(second.outputs).toEqual([{ charges: 1 }, receipt, { charges: 1 }]);
  });
});
