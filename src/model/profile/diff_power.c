/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/profile/diff_power.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "model/profile/spread.h"

#define POWER        0.95
#define Z            (1.959963984540054 + 1.644853626951473) /* normal quantiles of 0.975 and of POWER */
#define LARGE        400.0 /* samples, from which on the distributions count as normal */
#define NODES        8     /* means over which the chance of a find is averaged */
#define BISECTIONS   16
#define LEAST_PERIOD 1024
/* An exact side is treated as if sampled with the period of the other side divided by EXACT_SHARE. */
#define EXACT_SHARE  8.0
#define RANGE_SIGMAS 5.0

/* What a comparison knows before its samples are drawn. */
struct setting {
    /* samples of the part of the memory before that is not common to both sides */
    double before;
    /* bytes or objects for which a sample before stands; 0: that part is known to be empty */
    double unit_before;
    double unit_after;
};

/* ---- the exact calculation ---- */

/*
 * Returns the smallest number of samples on the second side that counts as growth, if the first side has `before`. The
 * search begins at `from`, which must not be above the result.
 */
static double least_after(const struct setting *s, double before, double from)
{
    double shrank = before * s->unit_before,
           most = estimate_gamma_quantile(before + 1, true) * s->unit_before;
    for (;; from++) {
        double grew = from * s->unit_after, least = estimate_gamma_quantile(from, false) * s->unit_after;
        if (grew - shrank > hypot(grew - least, most - shrank))
            return from;
    }
}

/* The chance of a find if the mean number of samples is `mean` before and `mean_after` after. thresholds[n] is
 * least_after(n). */
static double chance_of(const double *thresholds, size_t n, double mean, double mean_after)
{
    double chance = 0;
    int sign;
    if (!(mean > 0))
        return estimate_poisson_tail(thresholds[0], mean_after);
    double width = RANGE_SIGMAS * sqrt(mean) + RANGE_SIGMAS;
    for (double k = floor(fmax(mean - width, 0)); k < (double)n && k <= mean + width; k++)
        chance += exp(k * log(mean) - mean - lgamma_r(k + 1, &sign)) *
                  estimate_poisson_tail(thresholds[(size_t)k], mean_after);
    return chance;
}

/* Quantiles of the gamma distribution of this shape, at the middles of NODES equal parts, by the approximation of
 * Wilson and Hilferty (1931). */
static void spread_means(double shape, double *means)
{
    static const double normal[NODES] = {-1.534121, -0.887147, -0.488776, -0.157311,
                                         0.157311,  0.488776,  0.887147,  1.534121};
    for (int i = 0; i < NODES; i++)
        means[i] = shape * pow(fmax(1 - 1 / (9 * shape) + normal[i] / (3 * sqrt(shape)), 0), 3);
}

/* In samples after. */
static double exact_growth(const struct setting *s)
{
    double means[NODES] = {0};
    if (s->unit_before > 0)
        spread_means(s->before + 0.5, means);
    double most = means[NODES - 1];
    size_t n = (size_t)(most + RANGE_SIGMAS * sqrt(most) + RANGE_SIGMAS) + 1;
    double *thresholds = mem_alloc(n * sizeof(*thresholds));
    for (size_t k = 0; k < n; k++)
        thresholds[k] = least_after(s, (double)k, k ? thresholds[k - 1] : 1);
    double low = 0, high = thresholds[n - 1] + 40;
    for (int step = 0; step < BISECTIONS; step++) {
        double middle = (low + high) / 2, chance = 0;
        for (int i = 0; i < NODES; i++)
            chance += chance_of(thresholds, n, means[i], means[i] * s->unit_before / s->unit_after + middle) /
                      NODES;
        *(chance < POWER ? &low : &high) = middle;
    }
    free(thresholds);
    return high;
}

static double growth_of(const struct setting *s)
{
    if (s->before <= LARGE && s->before * s->unit_before / s->unit_after <= LARGE)
        return exact_growth(s) * s->unit_after;
    /* growth = Z sqrt(variance before + unit_after (value before + growth)) */
    double value = s->before * s->unit_before;
    double variance = value * (s->unit_before + s->unit_after), linear = Z * Z * s->unit_after;
    return (linear + sqrt(linear * linear + 4 * Z * Z * variance)) / 2;
}

/* ---- from what was sampled ---- */

/* What was measured of a side. */
struct side {
    double value, variance; /* of the part that is not common to both sides */
    double unit;   /* bytes or objects for which a sample stands, at most; 0: the figures are exact */
    double period; /* bytes; 0: exact */
};

static struct side side_of(const struct estimate *part, const struct estimate *whole, double period,
                           bool count)
{
    struct side s = {.value = part->value, .variance = part->variance, .period = period};
    if (!count)
        s.unit = whole->first.mean;
    else if (whole->variance > 0)
        s.unit = whole->variance / whole->value;
    else if (!whole->samples)
        s.unit = whole->first.mean;
    return s;
}

/* Returns the setting if both sides were recorded with `period`; 0: as they were. */
static struct setting setting_of(const struct diff_value *v, bool count, double period)
{
    const struct rollup_value *of = v->of;
    struct side before = side_of(count ? &of[DIFF_SHRANK].count : &of[DIFF_SHRANK].bytes,
                                 count ? &of[DIFF_BEFORE].count : &of[DIFF_BEFORE].bytes,
                                 of[DIFF_BEFORE].bytes.first.mean, count);
    struct side after = side_of(count ? &of[DIFF_AFTER].count : &of[DIFF_AFTER].bytes,
                                count ? &of[DIFF_AFTER].count : &of[DIFF_AFTER].bytes,
                                of[DIFF_AFTER].bytes.first.mean, count);
    const struct estimate *shrank = count ? &of[DIFF_SHRANK].count : &of[DIFF_SHRANK].bytes;
    /* A side without samples has no mean weight: it takes that of the other side. */
    if (count && !of[DIFF_BEFORE].count.samples && before.unit > 0)
        before.unit = of[DIFF_AFTER].count.samples ? after.unit : INFINITY;
    if (count && !of[DIFF_AFTER].count.samples && after.unit > 0)
        after.unit = of[DIFF_BEFORE].count.samples ? before.unit : INFINITY;
    bool empty = rollup_exact(shrank) && !(shrank->value > 0); /* nothing can have been freed */
    if (period > 0) {
        before.variance *= before.period > 0 ? period / before.period : 0; /* near enough */
        double unit = count ? after.unit * period / after.period : period;
        before.unit = before.unit > 0 || !empty ? unit : 0;
        after.unit = unit;
    }
    struct setting s = {.unit_before = before.unit, .unit_after = after.unit};
    if (!(s.unit_before > 0) && !empty && s.unit_after > 0)
        s.unit_before = s.unit_after / EXACT_SHARE;
    s.unit_after = fmax(s.unit_after, s.unit_before / EXACT_SHARE);
    if (s.unit_before > 0 && !isinf(s.unit_before))
        s.before = before.variance > 0 ? before.variance / (s.unit_before * s.unit_before)
                                       : before.value / s.unit_before;
    return s;
}

static double smallest_of_samples(const struct diff_value *v, bool count)
{
    struct setting s = setting_of(v, count, 0);
    if (!(s.unit_after > 0) || isinf(s.unit_after))
        return s.unit_after;
    return growth_of(&s);
}

double diff_smallest_growth(const struct diff_value *v, bool count)
{
    const double *of = v->captures[count ? DIFF_COUNT : DIFF_BYTES];
    uint32_t before = v->n[PROFILE_PAIR_BEFORE], after = v->n[PROFILE_PAIR_AFTER];
    if (!of)
        return smallest_of_samples(v, count);
    struct spread_change c = spread_compare(of, before, of + before, after, 1);
    return fmax(spread_smallest_growth(&c), diff_is_exact(v, count) ? 0 : smallest_of_samples(v, count));
}

uint32_t diff_captures_for(const struct diff_value *v, bool count, double growth)
{
    const double *of = v->captures[count ? DIFF_COUNT : DIFF_BYTES];
    uint32_t before = v->n[PROFILE_PAIR_BEFORE], after = v->n[PROFILE_PAIR_AFTER];
    return of && growth > 0 ? spread_captures_for(of, before, of + before, after, growth) : 0;
}

uint64_t diff_period_for(const struct diff_value *v, bool count, double growth)
{
    double period = fmax(v->of[DIFF_BEFORE].bytes.first.mean, v->of[DIFF_AFTER].bytes.first.mean);
    double smallest = diff_smallest_growth(v, count);
    if (smallest <= growth)
        return 0;
    uint64_t next = LEAST_PERIOD;
    while (next * 2 < (uint64_t)period)
        next *= 2;
    for (; next >= LEAST_PERIOD && !isinf(smallest) && next < (uint64_t)period; next /= 2) {
        struct setting finer = setting_of(v, count, (double)next);
        if (growth_of(&finer) <= growth)
            return next;
    }
    return 1;
}
