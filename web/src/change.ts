// SPDX-License-Identifier: BSD-2-Clause
// What changed between two profiles, with its 95 % interval: src/model/profile/profile_diff.h says how it is derived.

import { intervalOf, type Estimate, type Interval } from "./estimate";
import type { Amount, Metric, Profile } from "./profile";

export const SIDES = ["after", "before", "grew", "shrank"] as const;
export type Side = (typeof SIDES)[number];

export interface Change extends Interval {
    before: Interval;
    after: Interval;
}

/** The estimates of the four sides, as one metric: "live after" is the side "after" of "live". */
export function sideOf(m: Metric, side: Side): Metric {
    return { key: `${m.key.split(" ")[0]} ${side}`, amount: m.amount as Amount };
}

/** GREW is part of what is after, so its upper end is at most that of all; the same holds for SHRANK and before. */
function bounded(e: Estimate, whole: Interval): Interval {
    const i = intervalOf(e);
    return { ...i, high: Math.max(Math.min(i.high, whole.high), e.value) };
}

export function changeOf(of: Record<Side, Estimate>): Change {
    const [before, after] = [intervalOf(of.before), intervalOf(of.after)];
    const [g, s] = [bounded(of.grew, after), bounded(of.shrank, before)];
    const value = g.value - s.value;
    return {
        value, before, after,
        low: value - Math.hypot(g.value - g.low, s.high - s.value),
        high: value + Math.hypot(g.high - g.value, s.value - s.low),
    };
}

/** The change of these rows. */
export function changeOfRows(profile: Profile, m: Metric, rows: readonly number[]): Change {
    const of = Object.fromEntries(SIDES.map((side) => [side, profile.estimate(sideOf(m, side), rows)]));
    return changeOf(of as Record<Side, Estimate>);
}

export function isNoise(c: Interval): boolean {
    return c.low <= 0 && c.high >= 0;
}

export function verdictOf(c: Interval): string {
    return c.low === 0 && c.high === 0 ? "no change" : isNoise(c) ? "within noise" : c.value > 0 ? "grew" : "shrank";
}
