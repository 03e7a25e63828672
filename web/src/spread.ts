// SPDX-License-Identifier: BSD-2-Clause
// The difference between sides of several captures, by how much the captures differ: src/model/profile/spread.h says how
// it is derived.

import { logGamma, type Interval } from "./estimate";

const BISECTIONS = 60; // each halves what the quantile may be off by

export const TAIL = 0.025; // of an interval of 95 %, on either side

/** The incomplete beta function, regularized. */
function betaCdf(a: number, b: number, x: number): number {
    if (x > 0.5) return 1 - betaCdf(b, a, 1 - x);
    let term = 1;
    let sum = 1;
    for (let n = 0; term > sum * 1e-17; n++) sum += term *= (x * (a + b + n)) / (a + 1 + n);
    return sum * Math.exp(logGamma(a + b) - logGamma(a + 1) - logGamma(b) + a * Math.log(x) + b * Math.log1p(-x));
}

function studentQuantile(tail: number, freedom: number): number {
    const isLow = (t: number) => betaCdf(freedom / 2, 0.5, freedom / (freedom + t * t)) > 2 * tail;
    let [low, high] = [0, 1];
    while (isLow(high)) high *= 2;
    for (let i = 0; i < BISECTIONS; i++) {
        const middle = (low + high) / 2;
        if (isLow(middle)) low = middle;
        else high = middle;
    }
    return high;
}

/** The mean, and its variance. */
function meanOf(of: number[]): [number, number] {
    const mean = of[0] + of.reduce((sum, v) => sum + v - of[0], 0) / of.length;
    const squares = of.reduce((sum, v) => sum + (v - mean) ** 2, 0);
    return [mean, of.length > 1 ? squares / (of.length - 1) / of.length : 0];
}

export interface Spread extends Interval {
    before: number;
    after: number;
}

/** The means, and the change from one to the other. A side with one capture varies as the other does. */
export function spreadOf(of: number[][], tail: number): Spread {
    const [n, k] = of.map((side) => side.length);
    let [[before, v], [after, w]] = of.map(meanOf);
    let freedom = n + k - 2;
    if (n < 2) v = w * k;
    else if (k < 2) w = v * n;
    else freedom = (v + w) ** 2 / (v ** 2 / (n - 1) + w ** 2 / (k - 1));
    const value = after - before;
    const half = v + w > 0 ? studentQuantile(tail, freedom) * Math.sqrt(v + w) : 0;
    return { value, low: value - half, high: value + half, before, after };
}
