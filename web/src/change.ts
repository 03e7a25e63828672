// SPDX-License-Identifier: BSD-2-Clause
// What changed between two profiles, with its 95 % interval: src/model/profile/profile_diff.h says how it is derived.

import { intervalOf, type Estimate, type Interval } from "./estimate";
import type { Amount, Metric, Profile } from "./profile";
import { spreadOf, TAIL } from "./spread";

const SIDES = ["after", "before", "grew", "shrank"] as const;
type Side = (typeof SIDES)[number];

/** How many captures each side has; `tail`: on either side of the intervals of rows. */
export interface Captures {
    before: number;
    after: number;
    tail: number;
}

export interface Change extends Interval {
    before: Interval;
    after: Interval;
}

/** The estimates of a side, as one metric: "live after" is the side "after" of "live". */
export function sideOf(m: Metric, side: Side | `capture${number}`): Metric {
    return { key: `${m.key.split(" ")[0]} ${side}`, amount: m.amount as Amount };
}

/** What changeOf() needs of some rows: the four sides, and each capture if there are several. */
export function metricsOfChange(profile: Profile, m: Metric): Metric[] {
    const { captures } = profile;
    const each = Array.from({ length: captures ? captures.before + captures.after : 0 }, (_, i) => sideOf(m, `capture${i}`));
    return [...SIDES.map((side) => sideOf(m, side)), ...each];
}

/** GREW is part of what is after, so its upper end is at most that of all; the same holds for SHRANK and before. */
function bounded(e: Estimate, whole: Interval): Interval {
    const i = intervalOf(e);
    return { ...i, high: Math.max(Math.min(i.high, whole.high), e.value) };
}

/** `sums`: of the metrics of metricsOfChange(). `isAll`: of all rows. */
export function changeOf(profile: Profile, sums: Estimate[], isAll: boolean): Change {
    const of = Object.fromEntries(SIDES.map((side, k) => [side, sums[k]])) as Record<Side, Estimate>;
    const [before, after] = [intervalOf(of.before), intervalOf(of.after)];
    const [g, s] = [bounded(of.grew, after), bounded(of.shrank, before)];
    const value = g.value - s.value;
    const c = {
        value, before, after,
        low: value - Math.hypot(g.value - g.low, s.high - s.value),
        high: value + Math.hypot(g.high - g.value, s.value - s.low),
    };
    const { captures } = profile;
    if (!captures) return c;
    const each = sums.slice(SIDES.length).map((e) => e.value);
    const spread = spreadOf([each.slice(0, captures.before), each.slice(captures.before)], isAll ? TAIL : captures.tail);
    const exact = (mean: number): Interval => ({ value: mean, low: mean, high: mean });
    const isSampled = c.low < c.high;
    return {
        value: spread.value,
        low: isSampled ? Math.min(spread.low, c.low) : spread.low, // the interval of samples may be the wider one
        high: isSampled ? Math.max(spread.high, c.high) : spread.high,
        before: exact(spread.before),
        after: exact(spread.after),
    };
}

/** The change of these rows. */
export function changeOfRows(profile: Profile, m: Metric, rows: readonly number[]): Change {
    const sums = metricsOfChange(profile, m).map((each) => profile.estimate(each, rows));
    return changeOf(profile, sums, rows.length === profile.rowNode.length);
}

export function isNoise(c: Interval): boolean {
    return c.low <= 0 && c.high >= 0;
}

export function verdictOf(c: Interval): string {
    return c.low === 0 && c.high === 0 ? "no change" : isNoise(c) ? "within noise" : c.value > 0 ? "grew" : "shrank";
}
