/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/profile/spread.h"

#include <math.h>
#include <stdlib.h>

#define BISECTIONS       200
#define POWER            0.95
#define POWER_STEPS      200 /* of the sum over standard errors */
#define POWER_BISECTIONS 40

/* ---- Student's distribution ---- */

/* The incomplete beta function, regularized, as a series: x^a (1 - x)^b gamma(a+b) / (gamma(a+1) gamma(b)) *
 * (1 + (a+b)/(a+1) x + (a+b)(a+b+1)/((a+1)(a+2)) x^2 ...), all of whose terms are positive. `rest` is 1 - x. */
static double beta_cdf(double a, double b, double x, double rest)
{
    int sign;
    double term = 1, sum = 1;
    if (x > 0.5)
        return 1 - beta_cdf(b, a, rest, x);
    if (!(x > 0))
        return 0;
    for (double n = 0; term > sum * 1e-17; n++)
        sum += term *= x * (a + b + n) / (a + 1 + n);
    return sum * exp(lgamma_r(a + b, &sign) - lgamma_r(a + 1, &sign) - lgamma_r(b, &sign) + a * log(x) +
                     b * log(rest));
}

double spread_student_tail(double t, double freedom)
{
    double square = t * t;
    if (isinf(square))
        return 0;
    return beta_cdf(freedom / 2, 0.5, freedom / (freedom + square), square / (freedom + square)) / 2;
}

double spread_student_quantile(double tail, double freedom)
{
    double low = 0, high = 1;
    while (spread_student_tail(high, freedom) > tail && !isinf(high))
        high *= 2;
    for (int i = 0; i < BISECTIONS && low < high; i++) {
        double middle = low + (high - low) / 2;
        if (middle <= low || middle >= high)
            break;
        *(spread_student_tail(middle, freedom) > tail ? &low : &high) = middle;
    }
    return high;
}

/* ---- two sides ---- */

double spread_mean(const double *of, uint32_t n)
{
    double rest = 0;
    for (uint32_t i = 0; i < n; i++)
        rest += of[i] - of[0];
    return n ? of[0] + rest / n : 0;
}

/* Returns the sample variance; 0 for one figure, and exactly 0 if all are alike. */
static double variance(const double *of, uint32_t n)
{
    double mean = spread_mean(of, n), sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += (of[i] - mean) * (of[i] - mean);
    return n > 1 ? sum / (n - 1) : 0;
}

struct spread_change spread_compare(const double *before, uint32_t n_before, const double *after,
                                    uint32_t n_after, double factor)
{
    struct spread_change c = {.value = spread_mean(after, n_after) - factor * spread_mean(before, n_before)};
    double of_before = variance(before, n_before) * factor * factor, of_after = variance(after, n_after);
    if (n_before < 2)
        of_before = of_after * factor * factor;
    if (n_after < 2)
        of_after = of_before / (factor * factor);
    double v = of_before / n_before, w = of_after / n_after;
    c.error = sqrt(v + w);
    if (!(c.error > 0))
        return c;
    if (n_before < 2 || n_after < 2)
        c.freedom = n_before + n_after - 2;
    else
        c.freedom = (v + w) / (v / (v + w) * v / (n_before - 1) + w / (v + w) * w / (n_after - 1));
    return c;
}

struct interval spread_interval(const struct spread_change *c, double tail)
{
    double half = c->freedom > 0 ? spread_student_quantile(tail, c->freedom) * c->error : 0;
    return (struct interval){c->value - half, c->value + half};
}

struct interval spread_mean_interval(const double *of, uint32_t n, double tail)
{
    struct spread_change c = {.value = spread_mean(of, n), .error = sqrt(variance(of, n) / n)};
    if (n < 2)
        return (struct interval){-INFINITY, INFINITY};
    c.freedom = c.error > 0 ? n - 1 : 0;
    return spread_interval(&c, tail);
}

double spread_chance(const struct spread_change *c)
{
    if (!(c->freedom > 0))
        return c->value == 0;
    return 2 * spread_student_tail(fabs(c->value) / c->error, c->freedom);
}

/* The probability that a growth by `growth` standard errors is found: that a normal variable of that mean exceeds t
 * times the estimated standard error, of which `freedom` times the square has a chi-square distribution. */
static double power_of(double growth, double t, double freedom)
{
    int sign;
    double width = 6 / sqrt(2 * freedom), low = fmax(1 - width, 0),
           step = (1 + width + 1 - low) / POWER_STEPS;
    double constant = log(2) + freedom / 2 * log(freedom / 2) - lgamma_r(freedom / 2, &sign), sum = 0;
    for (int i = 0; i < POWER_STEPS; i++) {
        double s = low + (i + 0.5) * step;
        double density = exp(constant + (freedom - 1) * log(s) - freedom * s * s / 2);
        sum += density * step * erfc((t * s - growth) / sqrt(2)) / 2;
    }
    return sum;
}

double spread_smallest_growth(const struct spread_change *c)
{
    if (!(c->freedom > 0))
        return 0;
    double t = spread_student_quantile(SPREAD_TAIL, c->freedom), low = t, high = 3 * t + 10;
    for (int i = 0; i < POWER_BISECTIONS; i++) {
        double middle = (low + high) / 2;
        *(power_of(middle, t, c->freedom) < POWER ? &low : &high) = middle;
    }
    return high * c->error;
}

uint32_t spread_captures_for(const double *before, uint32_t n_before, const double *after, uint32_t n_after,
                             double growth)
{
    double of_before = variance(before, n_before), of_after = variance(after, n_after);
    if (n_before < 2)
        of_before = of_after;
    if (n_after < 2)
        of_after = of_before;
    for (uint32_t n = 2; n <= SPREAD_CAPTURES_MOST; n++) {
        struct spread_change c = {.error = sqrt((of_before + of_after) / n), .freedom = 2 * n - 2};
        if (spread_smallest_growth(&c) <= growth)
            return n;
    }
    return 0;
}

/* ---- many rows ---- */

static int smaller_first(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double spread_select(double *chances, size_t n)
{
    size_t selected = 0;
    if (!n)
        return SPREAD_TAIL;
    qsort(chances, n, sizeof(*chances), smaller_first);
    for (size_t i = 0; i < n; i++)
        if (chances[i] <= 2 * SPREAD_TAIL * (double)(i + 1) / (double)n)
            selected = i + 1;
    return SPREAD_TAIL * (double)(selected ? selected : 1) / (double)n;
}
