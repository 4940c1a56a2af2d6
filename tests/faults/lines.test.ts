import { join } from "node:path";
import { type ClaimRequest, claimId, randomId } from "@twiceproof/core/store";
import { sqliteStore } from "@twiceproof/store-sqlite";
import { describeOn } from "@twiceproof/test-servers/vitest";
import { expect, it, onTestFinished } from "vitest";
import { type LineWorkers, lineWorkers } from "./line-workers.ts";
import { everywhere, range, sceneOn, until } from "./support.ts";

const title =
  "1: of eight who wait for one lock, twenty times each, the first in line is inside, and a dead one is passed";
const [processes, rounds] = [8, 20];

it(`${title}: SQLite`, async () => {
  const workers = lineWorkers(onTestFinished);
  const source = join(workers.folder, "app.db");
  const store = sqliteStore(source);
  await store.migrate();
  await store.close();
  await race(workers, source);
});

describeOn(everywhere, "processes", (server) => {
  it(title, async (context) => {
    const { url } = await sceneOn(server, context);
    await race(lineWorkers(onTestFinished), url);
  });
});

async function race(workers: LineWorkers, source: string): Promise<void> {
  const key = `thread:${randomId()}`;
  const request: ClaimRequest = {
    ...{ id: claimId("test", "thread", key), attemptId: randomId(), namespace: "test", kind: "lock", key, name: "run" },
    ...{ scope: null, turn: null, runId: null, fingerprint: "1:same", holder: "worker", seen: null, fence: null },
    leaseMs: 60_000,
  };
  const count = (what: string): number => workers.events().filter((event) => event.what === what).length;
  const all = range(processes).map(() => workers.start({ source, request, rounds, ticketLeaseMs: 60_000 }));
  await until("all processes", () => count("ready") === processes);
  const dying = workers.start({ source, request, rounds: 0, ticketLeaseMs: 3_000 });
  await until("the one that dies to stand in the line", () => count("entered") === 1);
  await dying.kill();
  workers.go();
  expect(await Promise.all(all.map(({ ended }) => ended))).toEqual(all.map(() => 0));

  const events = workers.events();
  const turns = events.flatMap((event) => (event.what === "in" || event.what === "out" ? [event] : []));
  // Who is out is out before the next one is in, and each is inside under the next token.
  const alone = range(processes * rounds).flatMap((index) => [`in ${index + 1}`, `out ${index + 1}`]);
  expect(turns.map(({ what, token }) => `${what} ${token}`)).toEqual(alone);

  const served = turns.filter(({ what }) => what === "in").map(({ ticketId }) => ticketId);
  const lines = events.flatMap((event) => (event.what === "entered" ? [event.line] : []));
  const [[dead] = []] = lines;
  expect(served).not.toContain(dead);
  // Some stood behind it before its lease was over.
  expect(lines.filter((line) => line[0] === dead && line.length > 1)).not.toEqual([]);
  for (const line of lines)
    expect(served.filter((ticketId) => line.includes(ticketId))).toEqual(line.filter((ticketId) => ticketId !== dead));
}
