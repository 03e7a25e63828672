// SPDX-License-Identifier: BSD-2-Clause
// Sums of samples and their 95 % interval: src/model/profile/estimate.h says how they are derived. The figures are the
// same as those of `allium report --json`, but for rounding.

export interface Interval {
    value: number;
    low: number;
    high: number;
}

const TAIL = 0.025;
const TAIL_Z = 1.959963984540054; // normal quantile of 1 - TAIL
const EXPAND_SHAPE = 100; // from here on the Cornish-Fisher expansion is good to 4e-8
const NEWTON_STEPS = 100;
const MISSED_EACH = 1.8; // objects assumed in an octave without samples, in multiples of the largest weight
const SMALLEST = 8; // bytes: a count assumes that objects it has not seen are no smaller

// Lanczos' approximation with g = 7 and nine terms, good to some 1e-15.
const LANCZOS = [
    0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059,
    12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7,
];

function logGamma(x: number): number {
    let sum = LANCZOS[0];
    for (let i = 1; i < LANCZOS.length; i++) sum += LANCZOS[i] / (x - 1 + i);
    const t = x + 6.5;
    return 0.5 * Math.log(2 * Math.PI) + (x - 0.5) * Math.log(t) - t + Math.log(sum);
}

/** The lower incomplete gamma function, regularized. */
function gammaCdf(shape: number, x: number): number {
    let term = 1;
    let sum = 1;
    for (let n = shape + 1; term > sum * 1e-16; n++) {
        term *= x / n;
        sum += term;
    }
    return sum * Math.exp(shape * Math.log(x) - x - logGamma(shape + 1));
}

function expandQuantile(shape: number, z: number): number {
    const root = Math.sqrt(shape);
    const z2 = z * z;
    return (
        shape + z * root + (z2 - 1) / 3 + (z * (z2 - 7)) / (36 * root) -
        (3 * z2 * z2 + 7 * z2 - 16) / (810 * shape) +
        (z * (9 * z2 * z2 + 256 * z2 - 433)) / (38880 * shape * root)
    );
}

/** Newton's method, with a bisection where a step would leave the bracket. */
function solveQuantile(shape: number, probability: number): number {
    const log = logGamma(shape + 1);
    let low = Math.exp((Math.log(probability) + log) / shape);
    let high = shape + 12 * Math.sqrt(shape) + 12;
    let x = low;
    for (let i = 0; i < NEWTON_STEPS && x > 0; i++) {
        const error = gammaCdf(shape, x) - probability;
        const density = Math.exp((shape - 1) * Math.log(x) - x - log) * shape;
        if (error < 0) low = x;
        else high = x;
        let next = x - error / density;
        if (!(next >= low && next <= high)) next = low + (high - low) / 2;
        if (Math.abs(next - x) <= x * 1e-12) return next;
        x = next;
    }
    return x;
}

function gammaQuantile(shape: number, upper: boolean): number {
    if (!(shape > 0)) return 0;
    if (shape >= EXPAND_SHAPE) return expandQuantile(shape, upper ? TAIL_Z : -TAIL_Z);
    return solveQuantile(shape, upper ? 1 - TAIL : TAIL);
}

function quantileOf(mean: number, variance: number, upper: boolean): number {
    if (!(mean > 0) || !(variance > 0)) return mean > 0 ? mean : 0;
    return (variance / mean) * gammaQuantile((mean / variance) * mean, upper);
}

/** The members of struct estimate, by the names that they have in the data. */
export const PARTS = [
    "samples", "exact", "value", "seen", "variance", "grain", "log_weight", "next_mean", "next_variance",
    "first_mean", "first_variance", "smallest", "largest",
] as const;
export type Part = (typeof PARTS)[number];
export type Estimate = Record<Part, number>;

export function emptyEstimate(): Estimate {
    return {
        samples: 0, exact: 0, value: 0, seen: 0, variance: 0, grain: 0, log_weight: 0, next_mean: 0,
        next_variance: 0, first_mean: 0, first_variance: 0, smallest: 0, largest: 0,
    };
}

function widen(e: Estimate, smallest: number, largest: number): void {
    if (!(e.smallest > 0) || (smallest > 0 && smallest < e.smallest)) e.smallest = smallest;
    if (largest > e.largest) e.largest = largest;
}

/** Adds what row `i` of the columns has. */
export function mergeRow(e: Estimate, c: Record<Part, ArrayLike<number>>, i: number): void {
    e.samples += c.samples[i];
    e.exact += c.exact[i];
    e.value += c.value[i];
    e.seen += c.seen[i];
    e.variance += c.variance[i];
    e.grain += c.grain[i];
    e.log_weight += c.log_weight[i];
    if (c.next_mean[i] > e.next_mean) e.next_mean = c.next_mean[i];
    if (c.next_variance[i] > e.next_variance) e.next_variance = c.next_variance[i];
    if (c.first_mean[i] > e.first_mean) e.first_mean = c.first_mean[i];
    if (c.first_variance[i] > e.first_variance) e.first_variance = c.first_variance[i];
    widen(e, c.smallest[i], c.largest[i]);
}

function raiseFirst(e: Estimate, mean: number, variance: number): void {
    if (mean > e.first_mean) e.first_mean = mean;
    if (variance > e.first_variance) e.first_variance = variance;
}

function raiseNext(e: Estimate, mean: number, variance: number): void {
    if (mean > e.next_mean) e.next_mean = mean;
    if (variance > e.next_variance) e.next_variance = variance;
}

/** w - 1 for an object of this size; w is its weight. */
function excessWeight(size: number, period: number): number {
    return 1 / Math.expm1(size / period);
}

function addSampled(e: Estimate, value: number, seen: number, variance: number, size: number): void {
    e.value += value;
    e.seen += seen;
    e.variance += variance;
    e.grain += variance * size;
}

/** Sums over the sampled objects of a cell: their number, their bytes, and the estimates of all bytes and objects. */
export interface Sums {
    samples: number;
    seen: number;
    bytes: number;
    count: number;
}

/** The weighted number of samples, for log_weight of estimate.h. */
function logWeight(c: Sums): number {
    return c.samples * Math.log(Math.max(c.count / c.samples, 1));
}

/** What a cell adds to an estimate of bytes. */
export function addCellBytes(e: Estimate, c: Sums, period: number): void {
    e.samples += c.samples;
    if (period <= 1) {
        e.exact += c.samples;
        e.value += c.bytes;
        e.seen += c.bytes;
        return;
    }
    raiseFirst(e, period, period * period);
    raiseNext(e, e.first_mean, e.first_variance);
    if (!c.samples) return;
    const unseen = Math.max(c.bytes - c.seen, 0);
    const mean = c.seen / c.samples;
    let size = unseen / (c.count - c.samples); // either may round to 0; the size class then bounds the size
    size = size < mean ? size : mean;
    size = size > mean / 2 ? size : mean / 2;
    const variance = size > 0 ? unseen * size * (1 + excessWeight(size, period)) : 0;
    addSampled(e, c.seen + unseen, c.seen, variance, size);
    e.log_weight += logWeight(c);
}

/** What a cell adds to an estimate of objects. */
export function addCellCount(e: Estimate, c: Sums, period: number): void {
    const k = c.samples;
    e.samples += k;
    if (period <= 1) {
        e.exact += k;
        e.value += k;
        e.seen += k;
        return;
    }
    if (!k) {
        const weight = excessWeight(SMALLEST, period);
        raiseFirst(e, weight, weight * (weight + 1));
        return;
    }
    const unseen = Math.max(c.count - k, 0);
    const value = k + unseen;
    const spread = value / k / (1 + excessWeight(c.seen / k, period));
    const variance = ((unseen * value) / k) * Math.max(spread, 1);
    addSampled(e, value, k, variance, 1);
    e.log_weight += logWeight(c);
    raiseNext(e, unseen / k, variance / k);
    const size = Math.max(c.seen / k, 1); // an object of 0 bytes is sampled like one of 1 byte
    widen(e, size, size);
}

/** What a cell adds to the value of an estimate. */
export function cellValue(c: Sums, period: number, isCount: boolean): number {
    if (isCount) return period <= 1 ? c.samples : c.samples && Math.max(c.count, c.samples);
    return period <= 1 ? c.bytes : c.samples && Math.max(c.bytes, c.seen);
}

/** Objects to assume in the octaves below the smallest sampled size. */
function countBelow(e: Estimate, high: number): number {
    if (!(e.smallest > SMALLEST)) return 0;
    const octaves = Math.log2(e.smallest / SMALLEST);
    const spread = Math.log2(e.largest / e.smallest);
    return (octaves * Math.min(high / (1 + spread), MISSED_EACH * (1 + e.next_mean)) * spread) / (1 + spread);
}

export function intervalOf(e: Estimate): Interval {
    const sampled = e.samples > e.exact;
    const mean = sampled ? e.next_mean : e.first_mean;
    const variance = sampled ? e.next_variance : e.first_variance;
    const unseen = e.value - e.seen;
    const half = e.variance > 0 ? Math.min(e.grain / e.variance / 2, TAIL_Z * Math.sqrt(e.variance)) : 0;
    let low = quantileOf(unseen, e.variance, false) - half;
    let high = quantileOf(unseen + mean, e.variance + variance, true) + half;
    if (low < 0 || Math.exp(-e.log_weight) >= TAIL) low = 0;
    high += e.seen;
    high += countBelow(e, high);
    return { value: e.value, low: Math.min(e.seen + low, e.value), high: Math.max(high, e.value) };
}
