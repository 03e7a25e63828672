/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_ESTIMATE_H
#define MODEL_ESTIMATE_H

/*
 * What the samples say about all objects: an estimate and its 95 % interval, from the sums the agent keeps.
 * It does not know stacks, time or files: any set of cells can be added up.
 *
 * Runs in: the tool. Threads: pure functions of their arguments. Owns: nothing.
 * Invariant of every interval: seen <= low <= value <= high, all finite.
 *
 * How it is derived
 *
 * An object of n bytes is sampled with probability p = 1 - exp(-n/P), apart from all others, and carries the
 * weight w = 1/p (Horvitz and Thompson 1952). Let a = n for bytes and a = 1 for counts. The truth is
 * T = S + U, where S = sum of a over the sampled objects is certain and only U, the unsampled rest, is not.
 * With sums over the samples:
 *
 *     u = a (w - 1)          U' = sum u          estimates U without bias
 *     v = a w u              V  = sum v          estimates Var(S + U') = sum over all objects of a^2 (1-p)/p
 *
 * Objects far larger than P have w = 1 and add nothing to U' or V. Of objects of one size, given k sampled, the
 * unsampled number lies between quantiles of the negative binomials NB(k, p) below and NB(k + 1, p) above
 * (Clopper and Pearson 1934, read the other way). U' and V are the mean and the variance of a NB(k, p), and one
 * more sample's u and v make them those of a NB(k + 1, p). For small p that is a gamma distribution, and a sum
 * over different weights is close to the gamma distribution of the same mean and variance: Fay and Feuer,
 * "Confidence intervals for directly standardized rates: a method based on the gamma distribution", Statistics
 * in Medicine 16 (1997) 791-801. With G(q; m, s) the quantile of the gamma distribution of mean m, variance s:
 *
 *     low = S + G(0.025; U', V)          high = S + G(0.975; U' + u*, V + v*)
 *
 * where u*, v* belong to one sample that was missed, of the largest weight possible. With equal weights and
 * small p this is Garwood's (1936) exact interval of a Poisson mean.
 *
 * Objects near P or larger come in lumps that a continuous distribution does not know:
 *   - half an object, (sum v a) / (2 V) but at most 1.96 sqrt(V), is taken off below and put on above (the
 *     continuity correction);
 *   - if all that were sampled would be with chance exp(-sum ln w) >= 0.025, nothing else need exist: low = S.
 * Then coverage, computed exactly for one size of up to 8 P and any number, is never under 94.4 %.
 *
 * Bytes. With x = n/P, u = P x / (exp(x) - 1) and v = P^2 x^2 exp(x) / (exp(x) - 1)^2 fall from P and P^2 at
 * n = 0: u* = P, v* = P^2 hold for all sizes. Nothing sampled: [0, 3.69 P]. (The one-sided 3.00 P would miss
 * the truth whenever 3 samples are expected and none comes: 5 % for this side alone.)
 *
 * Counts. u = 1 / (exp(x) - 1) has no bound as n falls: a thousand 8-byte objects leave, as a rule, no trace
 * among a thousand samples. Something must be assumed about sizes below the smallest sampled:
 *   - nothing was sampled: they may be as small as ESTIMATE_SMALLEST, so [0, 3.69 P / 8];
 *   - else u*, v* are the mean u, v of the cell with the largest weight, w*. If the sizes sampled spread over L
 *     octaves (log2 of largest / smallest), sizes may go on below as they did above: each octave from the
 *     smallest sampled down to ESTIMATE_SMALLEST may add another high / (1 + L), what an octave holds up there,
 *     but at most 1.8 w* (calibrated: all these octaves together then expect at most 1.8 samples); times
 *     L / (1 + L), so nothing where all sizes are alike.
 * This holds for one size, for log-uniform and doubling sizes; it fails where small objects hide behind a
 * few large ones and none of them was sampled (bench/coverage.c: 8 MiB among 8 B at 3 samples).
 *
 * From cells. V needs sum n^2 w (w - 1); a cell has k, sum n, sum n w, sum w. For bytes, m = (sum n (w - 1)) /
 * (sum (w - 1)) is the mean size with weights w - 1, and V = (sum n (w - 1)) m w(m): exact for equal sizes, while
 * they differ by up to a factor 2 at most 12 % short (4 % if they fill the octave), nothing for n << P. For
 * counts w and w - 1 rise together, and k times the product of their means falls short by their covariance: for
 * small p by the factor 1 + (coefficient of variation)^2, which is (mean w) / w(mean n) to second order; within
 * 6 % of sum w (w - 1). tests/unit/test_estimate.c holds these to it.
 */

#include <stdbool.h>
#include <stdint.h>

#define ESTIMATE_SMALLEST 8.0 /* bytes: a count assumes that objects it has not seen are no smaller */

/** Sums over the sampled objects of one size class (a power of two) and one period. The agent also separates
 * stacks and threads, which does not matter here. */
struct estimate_cell {
    uint64_t samples; /* k; 0 is allowed: this period was in force and nothing was sampled */
    double seen;      /* bytes: sum of n */
    double bytes;     /* bytes: sum of n w */
    double count;     /* objects: sum of w */
    double period;    /* bytes; 1 or less: every object was sampled, there is no error */
};

/** The mean and variance that one missed object could add to the unsampled rest; see u* and v* above. */
struct estimate_missed {
    double mean, variance;
};

/** A sum of cells, either of bytes or of counts; never mix the two. All zero is the empty sum. */
struct estimate {
    uint64_t samples;
    uint64_t exact;  /* number of samples taken at period 1 */
    double value;    /* unbiased estimate of the truth: bytes or objects */
    double seen;     /* the part of it that was sampled and so is certain */
    double variance; /* of the value */
    double grain;    /* sum over cells of their variance times the bytes (or 1) of an object */
    /* sum of ln w: the chance that all existing objects were sampled is exp(-log_weight) */
    double log_weight;
    struct estimate_missed next;  /* for a missed sample, if something was sampled */
    struct estimate_missed first; /* for a missed sample, if nothing was sampled; else not used */
    double smallest, largest;     /* bytes, counts only: lowest and highest mean size of a cell */
};

struct interval {
    double low, high;
};

void estimate_add_cell_bytes(struct estimate *e, const struct estimate_cell *cell);
void estimate_add_cell_count(struct estimate *e, const struct estimate_cell *cell);
/** Adds one object of `amount` that was drawn from `n` with equal chances. */
void estimate_add_one_of(struct estimate *e, double amount, uint32_t n);
/** Does both at less cost. */
void estimate_add_cell(struct estimate *bytes, struct estimate *count, const struct estimate_cell *cell);
/** Adds `other`, which must share no object with `e` (two snapshots of one image share objects). */
void estimate_merge(struct estimate *e, const struct estimate *other);
/** Multiplies the value, and its interval, by a factor above 0. */
void estimate_scale(struct estimate *e, double factor);
/** Returns the 95 % interval of the true value, with 2.5 % on either side. */
struct interval estimate_interval(const struct estimate *e);

/** Returns the 2.5 % or (upper) 97.5 % quantile of the gamma distribution of this shape and scale 1, with a
 * relative error under 1e-7. Shape 0 gives 0. */
double estimate_gamma_quantile(double shape, bool upper);

/** Returns the probability that a Poisson variable of this mean is at least `least`, a whole number. */
double estimate_poisson_tail(double least, double mean);

#endif
