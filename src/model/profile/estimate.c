/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/profile/estimate.h"

#include <math.h>

#define TAIL         0.025
#define TAIL_Z       1.959963984540054 /* normal quantile of 1 - TAIL */
#define EXPAND_SHAPE 100.0             /* from here on the Cornish-Fisher expansion is good to 4e-8 */
#define NEWTON_STEPS 100
#define MISSED_EACH  1.8 /* objects assumed in an octave without samples, in multiples of the largest weight */

/* The lower incomplete gamma function, regularized: x^a e^-x / gamma(a+1) * (1 + x/(a+1) + x^2/(a+1)(a+2) ...).
 * All terms are positive, so nothing cancels. For a shape under EXPAND_SHAPE, a few hundred terms suffice. */
static double gamma_cdf(double shape, double x)
{
    int sign;
    double term = 1, sum = 1;

    for (double n = shape + 1; term > sum * 1e-16; n++) {
        term *= x / n;
        sum += term;
    }
    return sum * exp(shape * log(x) - x - lgamma_r(shape + 1, &sign));
}

/* Goldberg and Levine, "Approximate formulas for the percentage points and normalization of t and chi-square",
 * Annals of Mathematical Statistics 17 (1946) 216-225, for shape = half the degrees of freedom. */
static double expand_quantile(double shape, double z)
{
    double root = sqrt(shape), z2 = z * z;

    return shape + z * root + (z2 - 1) / 3 + z * (z2 - 7) / (36 * root) -
           (3 * z2 * z2 + 7 * z2 - 16) / (810 * shape) +
           z * (9 * z2 * z2 + 256 * z2 - 433) / (38880 * shape * root);
}

/* Solves gamma_cdf(shape, x) = probability for x: Newton's method, with a bisection where a step would leave the
 * bracket. The start solves x^a / gamma(a+1) = probability. It is not above the root, because
 * gamma_cdf(a, x) <= x^a / gamma(a+1), and for a small shape it is close to the root. */
static double solve_quantile(double shape, double probability)
{
    int sign;
    double log_gamma = lgamma_r(shape + 1, &sign);
    double low = exp((log(probability) + log_gamma) / shape);
    double high = shape + 12 * sqrt(shape) + 12;
    double x = low;

    for (int i = 0; i < NEWTON_STEPS && x > 0; i++) {
        double error = gamma_cdf(shape, x) - probability;
        double density = exp((shape - 1) * log(x) - x - log_gamma) * shape;
        double next;

        if (error < 0)
            low = x;
        else
            high = x;
        next = x - error / density;
        if (!(next >= low && next <= high))
            next = low + (high - low) / 2;
        if (fabs(next - x) <= x * 1e-12)
            return next;
        x = next;
    }
    return x;
}

double estimate_gamma_quantile(double shape, bool upper)
{
    if (!(shape > 0))
        return 0;
    if (shape >= EXPAND_SHAPE)
        return expand_quantile(shape, upper ? TAIL_Z : -TAIL_Z);
    return solve_quantile(shape, upper ? 1 - TAIL : TAIL);
}

double estimate_poisson_tail(double least, double mean)
{
    /* The result differs from 1 by less than 1e-20, and the series might overflow. */
    if (mean - least > 10 * sqrt(mean) + 10)
        return 1;
    return !(least > 0) ? 1 : mean > 0 ? fmin(gamma_cdf(least, mean), 1) : 0;
}

/* Returns the 2.5 % or (upper) 97.5 % quantile of the gamma distribution of this mean and variance; the mean
 * itself if the variance is 0. */
static double quantile_of(double mean, double variance, bool upper)
{
    if (!(mean > 0) || !(variance > 0))
        return mean > 0 ? mean : 0;
    return variance / mean * estimate_gamma_quantile(mean / variance * mean, upper);
}

/* Returns w - 1 for an object of `size` bytes; w is its weight. */
static double excess_weight(double size, double period)
{
    return 1 / expm1(size / period);
}

/* Like fmax() and fmin() if `b` is not NaN; inline, which saves the call. */
static inline double larger(double a, double b)
{
    return a > b ? a : b;
}

static inline double smaller(double a, double b)
{
    return a < b ? a : b;
}

static void raise_missed(struct estimate_missed *m, double mean, double variance)
{
    if (mean > m->mean)
        m->mean = mean;
    if (variance > m->variance)
        m->variance = variance;
}

static void widen_sizes(struct estimate *e, double smallest, double largest)
{
    if (!(e->smallest > 0) || (smallest > 0 && smallest < e->smallest))
        e->smallest = smallest;
    e->largest = larger(e->largest, largest);
}

/* Counts the samples. At period 1 every object was sampled: adds `value`, which is exact, and returns true. */
static bool add_exact(struct estimate *e, const struct estimate_cell *c, double value)
{
    e->samples += c->samples;
    if (c->period > 1)
        return false;
    e->exact += c->samples;
    e->value += value;
    e->seen += value;
    return true;
}

/* The terms that one cell adds to the sums of an estimate. `value` is the estimate, `seen` the sampled part of it,
 * `size` the size of an unsampled object (1 for counts). */
struct part {
    double value, seen, variance, size, log_weight;
};

static void add_sampled(struct estimate *e, const struct part *part)
{
    e->value += part->value;
    e->seen += part->seen;
    e->variance += part->variance;
    e->grain += part->variance * part->size;
    e->log_weight += part->log_weight;
}

/* Returns the sum of ln w over the samples of the cell; 0 if it has none or is exact. */
static double log_weight_of(const struct estimate_cell *c)
{
    double k = (double)c->samples;

    return c->samples && c->period > 1 ? k * log(larger(c->count / k, 1)) : 0;
}

static void add_bytes(struct estimate *e, const struct estimate_cell *c, double log_weight)
{
    struct part part = {.seen = c->seen, .log_weight = log_weight};
    double k = (double)c->samples, unseen, size;

    if (add_exact(e, c, c->seen))
        return;
    raise_missed(&e->first, c->period, c->period * c->period);
    e->next = e->first;
    if (!c->samples)
        return;
    unseen = larger(c->bytes - c->seen, 0);
    size = unseen / (c->count - k); /* either may round to 0; the size class then bounds the size */
    part.size = size = larger(smaller(size, c->seen / k), c->seen / k / 2);
    part.value = c->seen + unseen;
    if (size > 0)
        part.variance = unseen * size * (1 + excess_weight(size, c->period));
    add_sampled(e, &part);
}

static void add_count(struct estimate *e, const struct estimate_cell *c, double log_weight)
{
    struct part part = {.seen = (double)c->samples, .size = 1, .log_weight = log_weight};
    double k = part.seen, smallest, unseen, spread, size;

    if (add_exact(e, c, k))
        return;
    if (!c->samples) { /* with samples, this sum and every sum that includes it use `next` instead */
        smallest = excess_weight(ESTIMATE_SMALLEST, c->period);
        raise_missed(&e->first, smallest, smallest * (smallest + 1));
        return;
    }
    unseen = larger(c->count - k, 0);
    part.value = k + unseen;
    spread = part.value / k / (1 + excess_weight(c->seen / k, c->period));
    part.variance = unseen * part.value / k * larger(spread, 1);
    add_sampled(e, &part);
    raise_missed(&e->next, unseen / k, part.variance / k);
    size = larger(c->seen / k, 1); /* an object of 0 bytes is sampled like one of 1 byte */
    widen_sizes(e, size, size);
}

void estimate_add_cell_bytes(struct estimate *e, const struct estimate_cell *c)
{
    add_bytes(e, c, log_weight_of(c));
}

void estimate_add_cell_count(struct estimate *e, const struct estimate_cell *c)
{
    add_count(e, c, log_weight_of(c));
}

void estimate_add_cell(struct estimate *bytes, struct estimate *count, const struct estimate_cell *c)
{
    double of_both = log_weight_of(c);

    add_bytes(bytes, c, of_both);
    add_count(count, c, of_both);
}

void estimate_add_one_of(struct estimate *e, double amount, uint32_t n)
{
    double rest = n - 1.0;
    e->samples++;
    e->exact += n <= 1;
    add_sampled(e, &(struct part){.value = n * amount,
                                  .seen = amount,
                                  .variance = amount * n * rest * amount,
                                  .size = amount,
                                  .log_weight = log(n)});
    raise_missed(&e->next, rest * amount, amount * n * rest * amount);
}

void estimate_merge(struct estimate *e, const struct estimate *other)
{
    e->samples += other->samples;
    e->exact += other->exact;
    e->value += other->value;
    e->seen += other->seen;
    e->variance += other->variance;
    e->grain += other->grain;
    e->log_weight += other->log_weight;
    raise_missed(&e->next, other->next.mean, other->next.variance);
    raise_missed(&e->first, other->first.mean, other->first.variance);
    widen_sizes(e, other->smallest, other->largest);
}

void estimate_scale(struct estimate *e, double factor)
{
    e->value *= factor;
    e->seen *= factor;
    e->variance *= factor * factor;
    e->grain *= factor * factor * factor;
    e->next.mean *= factor;
    e->next.variance *= factor * factor;
    e->first.mean *= factor;
    e->first.variance *= factor * factor;
}

/* Returns how many objects to assume in the octaves below the smallest sampled size; `high` is the upper end of the
 * interval without them. See "Counts" in the header. */
static double count_below(const struct estimate *e, double high)
{
    double octaves, spread;

    if (!(e->smallest > ESTIMATE_SMALLEST))
        return 0;
    octaves = log2(e->smallest / ESTIMATE_SMALLEST);
    spread = log2(e->largest / e->smallest);
    return octaves * fmin(high / (1 + spread), MISSED_EACH * (1 + e->next.mean)) * spread / (1 + spread);
}

struct interval estimate_interval(const struct estimate *e)
{
    const struct estimate_missed *missed = e->samples > e->exact ? &e->next : &e->first;
    double unseen = e->value - e->seen;
    double half = e->variance > 0 ? fmin(e->grain / e->variance / 2, TAIL_Z * sqrt(e->variance)) : 0;
    double low = quantile_of(unseen, e->variance, false) - half;
    double high = quantile_of(unseen + missed->mean, e->variance + missed->variance, true) + half;

    if (low < 0 || exp(-e->log_weight) >= TAIL)
        low = 0;
    high += e->seen;
    high += count_below(e, high);
    return (struct interval){.low = fmin(e->seen + low, e->value), .high = fmax(high, e->value)};
}
