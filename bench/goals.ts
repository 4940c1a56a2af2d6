import type { Measured } from "./measure.ts";
import type { SubjectName } from "./subject.ts";

export interface Goal {
  readonly name: string;
  readonly figure: string;
  readonly target: string;
  readonly met: boolean;
}

/** Times what is done by hand. */
const leastRatioAt64: Readonly<Record<SubjectName, number>> = { sqlite: 4, postgres: 3, mariadb: 3, mysql: 2.5 };
const mostP50At1 = 1.15;
const mostP99At64 = 0.5;

export function goalsOf({ name, levels, replay }: Measured): readonly Goal[] {
  const at = (callers: number) => {
    const level = levels.find((each) => each.callers === callers);
    if (level === undefined) throw new Error(`${callers} callers were not measured`);
    return level.ratio;
  };
  const rate = at(64).pairsPerSecond.median;
  const p50 = at(1).p50.median;
  const p99 = at(64).p99.median;
  const trips = replay.roundTrips === null ? null : replay.roundTrips / replay.replays;
  const isOneTrip = trips === null || trips === 1;
  const least = leastRatioAt64[name];
  return [
    { name: `${name}, pairs/s at 64 callers`, figure: times(rate), target: `at least ${least}x`, met: rate >= least },
    { name: `${name}, p50 at 1 caller`, figure: times(p50), target: `at most ${mostP50At1}x`, met: p50 <= mostP50At1 },
    { name: `${name}, p99 at 64 callers`, figure: times(p99), target: `under ${mostP99At64}x`, met: p99 < mostP99At64 },
    {
      name: `${name}, a replay`,
      figure: `${trips === null ? "" : `${trips} round trips, `}${replay.written} written in ${replay.replays} (${replay.by})`,
      target: `${trips === null ? "" : "1 round trip, "}0 written`,
      met: isOneTrip && replay.written === 0,
    },
  ];
}

function times(ratio: number): string {
  return `${ratio.toFixed(2)}x`;
}
