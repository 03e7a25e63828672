/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/bench/order_statistics.h"

#include <math.h>
#include <stdlib.h>

#define TAIL 0.025 /* on either side of an interval of 95 % */

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void order_sort(double *figures, size_t n)
{
    if (n)
        qsort(figures, n, sizeof(*figures), compare);
}

double order_quantile(const double *sorted, size_t n, double share)
{
    if (!n)
        return NAN;
    /* 0.9 of 10 is 9, although 0.9 is a little more than nine tenths */
    double rank = ceil(share * (double)n * (1 - 1e-12));
    rank = fmin(fmax(rank, 1), (double)n);
    return sorted[(size_t)rank - 1];
}

double order_median(const double *sorted, size_t n)
{
    if (!n)
        return NAN;
    return n % 2 ? sorted[n / 2] : sorted[n / 2 - 1] + (sorted[n / 2] - sorted[n / 2 - 1]) / 2;
}

struct interval order_median_interval(const double *sorted, size_t n)
{
    /* the probability that `below` of n coins fall heads up, added up from 0 on */
    int sign;
    double chance = 0;
    size_t below = 0;
    for (; below < n; below++) {
        chance += exp(lgamma_r((double)n + 1, &sign) - lgamma_r((double)below + 1, &sign) -
                      lgamma_r((double)(n - below) + 1, &sign) - (double)n * log(2));
        if (chance > TAIL)
            break;
    }
    if (!below)
        return (struct interval){-INFINITY, INFINITY};
    return (struct interval){sorted[below - 1], sorted[n - below]};
}
