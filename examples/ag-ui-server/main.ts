import { killServers } from "./processes.ts";
import { judge, playRound, type Round, type Row } from "./rounds.ts";
import { scenes } from "./scenes.ts";
import { openStage, type Servers, type Stage } from "./stage.ts";

interface Guarding {
  readonly title: string;
  readonly route: string;
  readonly questions: readonly [string, string];
  /** What has to come out. */
  readonly right: (row: Row) => boolean;
}

const rounds = 30;
const atOnce = 10;
const brief = ["APPLE", "BANANA"] as const;
const isClean = ({ lost, mixed, untrue, disordered }: Row): boolean => lost + mixed + untrue + disordered === 0;
/** Without a loss, the rows of the others would prove nothing. */
const isBroken = ({ lost, mixed }: Row): boolean => lost + mixed > 0;

const guardings: readonly Guarding[] = [
  { title: "no lock", route: "/no-lock", questions: brief, right: isBroken },
  { title: "a lock in each process", route: "/lock-in-process", questions: brief, right: isBroken },
  {
    title: "Twiceproof, reject",
    route: "/reject",
    questions: brief,
    right: (row) => isClean(row) && row.finished === rounds && row.refused === rounds,
  },
  {
    title: "Twiceproof, wait",
    route: "/wait",
    questions: brief,
    right: (row) => isClean(row) && row.finished === 2 * rounds,
  },
  {
    title: "Twiceproof, interrupt",
    route: "/interrupt",
    // Long enough for the first run to hear that it is to stop: within two seconds.
    questions: ["APPLE at length", "BANANA at length"],
    // One that has answered before it hears of it is finished.
    right: (row) => isClean(row) && row.finished + row.cancelled === 2 * rounds && row.cancelled > 0,
  },
];

const wrong: string[] = [];
let now = "before the first round";
let stage: Stage | undefined;
try {
  stage = await openStage();
  console.log(
    `Two servers, ${stage.database}. APPLE and BANANA are sent together to one thread, ${rounds} times for each row.\n`,
  );
  const servers = await stage.startServers();
  console.log(`${" ".repeat(26)}finished  refused  cancelled     lost  mixed  untrue snapshots`);
  for (const { title, route, questions, right } of guardings) {
    now = title;
    const row = judge(await playRounds(stage, servers, route, questions));
    const { finished, refused, cancelled, lost, mixed, untrue } = row;
    const widths = [8, 9, 11, 9, 7, 18];
    const counts = [finished, refused, cancelled, lost, mixed, untrue].map((n, i) =>
      String(n).padStart(widths[i] ?? 0),
    );
    console.log(`${title.padEnd(26)}${counts.join("")}`);
    if (!right(row)) wrong.push(title);
  }
  for (const { title, play } of scenes) {
    now = title;
    console.log(`\n${title}`);
    for (const [what, seen, expected] of await play(stage, servers)) {
      console.log(`   ${what}: ${seen}`);
      if (seen !== expected) wrong.push(`${title}, ${what}: expected ${expected}`);
    }
  }
} catch (error) {
  wrong.push(`${now}: ${(error as Error).stack}`);
} finally {
  await stage?.close();
  await killServers();
}

console.log(wrong.length === 0 ? "\nAll as expected." : `\nWRONG\n${wrong.join("\n")}`);
process.exitCode = wrong.length === 0 ? 0 : 1;

/** In every third round both messages reach the same server, as behind any load balancer. */
async function playRounds(
  { read }: Stage,
  [one, two]: Servers,
  route: string,
  questions: readonly [string, string],
): Promise<Round[]> {
  const played: Round[] = [];
  for (let first = 0; first < rounds; first += atOnce)
    played.push(
      ...(await Promise.all(
        Array.from({ length: atOnce }, (_, index) => {
          const other = (first + index) % 3 === 2 ? one : two;
          return playRound([one.url + route, other.url + route], questions, read);
        }),
      )),
    );
  return played;
}
