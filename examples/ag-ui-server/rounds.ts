import { randomUUID } from "node:crypto";
import type { Message } from "@ag-ui/core";
import { ask, type Told } from "./client.ts";
import { answerTo } from "./model.ts";
import { stoppedText } from "./turn.ts";

/** Two messages to one thread, and what became of them. */
export interface Round {
  /** In the order in which they were told that they started; who never was comes last. */
  readonly told: readonly [Told, Told];
  /** What the store holds in the end. */
  readonly held: readonly Message[];
}

export interface Row {
  readonly finished: number;
  readonly refused: number;
  readonly cancelled: number;
  /** Turns whose clients were told that they are finished, and that the thread does not hold. */
  readonly lost: number;
  /** Rounds that lost no question, and in which one is without its own answer. */
  readonly mixed: number;
  /** Closing snapshots that are not what the store holds. */
  readonly untrue: number;
  /** Rounds in which the thread holds two turns in another order than that in which they were accepted. */
  readonly disordered: number;
}

/** Sends APPLE and BANANA together, each to its server. */
export async function playRound(
  urls: readonly [string, string],
  questions: readonly [string, string],
  read: (thread: string) => Promise<readonly Message[]>,
): Promise<Round> {
  const thread = randomUUID();
  const [apple, banana] = await Promise.all([ask(urls[0], thread, questions[0]), ask(urls[1], thread, questions[1])]);
  const appleFirst = banana.startedAt === 0 || (apple.startedAt !== 0 && apple.startedAt < banana.startedAt);
  return { told: appleFirst ? [apple, banana] : [banana, apple], held: await read(thread) };
}

export function judge(rounds: readonly Round[]): Row {
  const told = rounds.flatMap((round) => round.told);
  const count = (outcome: Told["outcome"]): number => told.filter((each) => each.outcome === outcome).length;
  const failed = told.find(({ outcome }) => outcome === "failed");
  if (failed !== undefined) throw new Error(`${failed.question} failed: ${failed.code}`);
  const lost = rounds.map((round) => lostOf(round).length);
  return {
    finished: count("finished"),
    refused: count("refused"),
    cancelled: count("cancelled"),
    lost: lost.reduce((sum, each) => sum + each, 0),
    mixed: rounds.filter((round, index) => lost[index] === 0 && isMixed(round)).length,
    untrue: rounds.reduce((sum, round) => sum + untrueOf(round).length, 0),
    disordered: rounds.filter(isDisordered).length,
  };
}

function lostOf({ told, held }: Round): readonly Told[] {
  return told.filter(
    ({ question, outcome }) => outcome === "finished" && !held.some(({ content }) => content === question),
  );
}

function isMixed({ held }: Round): boolean {
  return held.some(({ role, content }, index) => {
    if (role !== "user") return held[index - 1]?.role !== "user";
    return ![answerTo(String(content)), stoppedText].includes(String(held[index + 1]?.content));
  });
}

function isDisordered({ told: [first, second], held }: Round): boolean {
  const [one, two] = held.filter(({ role }) => role === "user");
  return two !== undefined && (one?.content !== first.question || two.content !== second.question);
}

/** A true snapshot is the thread up to the client's own turn. */
function untrueOf({ told, held }: Round): readonly Told[] {
  return told.filter(({ question, outcome, snapshot }) => {
    if (outcome !== "finished" && outcome !== "cancelled") return false;
    const text = (messages: readonly Message[]): string => JSON.stringify(messages);
    const own = snapshot.at(-2)?.content === question;
    return !own || text(snapshot) !== text(held.slice(0, snapshot.length));
  });
}
