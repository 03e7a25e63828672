/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BENCH_STATS_H
#define BENCH_STATS_H

/*
 * Medians, ratios of medians, and the 95 % interval of a ratio by bootstrap. For benchmarks: each prints a ratio to a
 * floor measured in turns in the same run.
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static inline double stats_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static inline int stats_compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static inline double stats_median(const double *values, size_t n)
{
    double *sorted = malloc(n * sizeof(*sorted));
    memcpy(sorted, values, n * sizeof(*sorted));
    qsort(sorted, n, sizeof(*sorted), stats_compare);
    double m = n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
    free(sorted);
    return m;
}

struct stats_ratio {
    double ratio, low, high;
};

/** Ratio of the medians of a and b, with its 95 % interval (1,000 bootstrap draws, fixed seed). */
static inline struct stats_ratio stats_ratio(const double *a, const double *b, size_t n)
{
    enum { DRAWS = 1000 };
    double *x = malloc(n * sizeof(*x)), *y = malloc(n * sizeof(*y)), ratios[DRAWS];
    uint64_t seed = 42;
    for (int d = 0; d < DRAWS; d++) {
        for (size_t i = 0; i < n; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            x[i] = a[(seed >> 33) % n];
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            y[i] = b[(seed >> 33) % n];
        }
        ratios[d] = stats_median(x, n) / stats_median(y, n);
    }
    qsort(ratios, DRAWS, sizeof(*ratios), stats_compare);
    struct stats_ratio r = {stats_median(a, n) / stats_median(b, n), ratios[DRAWS / 40],
                            ratios[DRAWS - DRAWS / 40 - 1]};
    free(x);
    free(y);
    return r;
}

#endif
