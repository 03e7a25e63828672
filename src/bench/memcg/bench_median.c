/* SPDX-License-Identifier: BSD-2-Clause */
#include "bench/memcg/bench_median.h"

#include <math.h>
#include <stdlib.h>

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Returns k; 0: the values are too few. Adds up the probabilities of 0, 1, ... values below the median by their
 * logarithms, because 2^-n is 0 for large n. */
static size_t rank_of_bound(size_t n)
{
    double below = 0;
    size_t k = 0;
    for (;; k++) {
        const double log_p = lgamma((double)n + 1) - lgamma((double)k + 1) - lgamma((double)(n - k) + 1);
        below += exp(log_p - (double)n * M_LN2);
        if (below > 0.025)
            return k;
    }
}

struct bench_median bench_median_of(double *values, size_t n)
{
    if (!n)
        return (struct bench_median){NAN, NAN, NAN};
    qsort(values, n, sizeof(*values), compare);
    const double middle = n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
    const size_t k = rank_of_bound(n);
    if (!k)
        return (struct bench_median){middle, -INFINITY, INFINITY};
    return (struct bench_median){middle, values[k - 1], values[n - k]};
}
